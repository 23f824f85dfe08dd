#include "models/prediction/memory_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/plan/precision_formats.hpp"
#include "models/prediction/host_memory.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

namespace {

Bytes share(Bytes bytes, double factor) {
  return nearest_count<Bytes>(static_cast<double>(bytes.count()) * factor);
}

/// Communicators that a rank opens: one per axis in use, two for a pipeline.
std::int64_t communicators_of(const Plan& plan) {
  const bool cuts_experts = plan.experts.tensor > 1 && plan.experts.tensor != plan.tensor;
  return (plan.tensor > 1 ? 1 : 0) + (plan.context > 1 ? 1 : 0) + (plan.replicas() > 1 ? 1 : 0) +
         (plan.pipeline > 1 ? 2 : 0) + (plan.experts.ranks > 1 ? 2 : 0) + (cuts_experts ? 1 : 0);
}

/// Takes the saved fp32 logits of a micro-batch off one rank's activations, where the stack's loss
/// writes their gradient over them.
void drop_overwritten_logits(const Question& question, const Program& program,
                             const RankClass& ranks, MemoryByKind& held) {
  const Plan& plan = question.plan;
  const Model& model = question.model;
  const bool has_head = std::ranges::any_of(
      ranks.chunks, [&](std::uint32_t id) { return program.chunks[id].has_head; });
  const bool whole =
      model.causal && model.head.task_outputs == 0 && !plan.kernels.fused_cross_entropy;
  const double copies = question.software.memory.loss_copies;
  if (!has_head || !whole || copies >= 0) return;
  const std::int64_t tokens = plan.batch.micro * plan.batch.seq_len / plan.context;
  const Bytes logits =
      multiplied<Bytes>(tokens, model.embedding.vocab, bits(state_dtype(plan.formats.precision)));
  Bytes& bytes = held[static_cast<std::size_t>(BufferKind::activation)];
  bytes = std::max(Bytes{}, bytes + share(logits, copies / 8 / static_cast<double>(plan.tensor)));
}

/// What a paged optimizer may keep on the host.
Bytes pageable(const Question& question, const StageMemory& stage) {
  if (!question.plan.optimizer.paged) return Bytes{};
  return stage.program[static_cast<std::size_t>(BufferKind::optimizer)];
}

/// What of a stage is allocated as the step goes.
Bytes dynamic_of(const StageMemory& stage) {
  return total(stage.program) + stage.context - stage.held();
}

/// Memory that the GPU needs while so much of the optimizer's state is on the host.
MemoryNeed need_of(const StageMemory& stage, Bytes paged) {
  return memory_need(stage.held() - paged, dynamic_of(stage) + stage.fragmentation);
}

}  // namespace

Bytes StageMemory::held() const {
  const auto of = [&](BufferKind kind) { return program[static_cast<std::size_t>(kind)]; };
  return of(BufferKind::parameter) + of(BufferKind::gradient) + of(BufferKind::optimizer) + context;
}

void add_memory(const Question& question, Prediction& prediction) {
  add_memory(question, memory_peaks(*prediction.program), prediction);
}

void add_memory(const Question& question, const std::vector<MemoryPeak>& peaks,
                Prediction& prediction) {
  const MemoryAllowances& allowed = question.software.memory;
  const Program& program = *prediction.program;
  const Bytes available = question.cluster.gpu().memory;
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    StageMemory stage;
    stage.stage = program.classes[c].stage;
    stage.program = peaks[c].by_kind;
    stage.context = allowed.context + allowed.workspace +
                    allowed.per_communicator * communicators_of(question.plan);
    drop_overwritten_logits(question, program, program.classes[c], stage.program);
    stage.fragmentation = share(dynamic_of(stage), allowed.fragmentation) +
                          share(stage.held() - stage.context, allowed.state_fragmentation);
    stage.total = total(stage.program) + stage.context + stage.fragmentation;
    stage.paged = std::clamp(stage.total - available, Bytes{}, pageable(question, stage));
    stage.total = stage.total - stage.paged;
    const bool all = allowed.reported == ReportedMemory::device;
    stage.reported = all ? stage.total : stage.total - (stage.context - allowed.workspace);
    stage.need = need_of(stage, stage.paged);
    prediction.memory.push_back(stage);
    if (stage.total > prediction.memory[prediction.fullest].total) prediction.fullest = c;
  }
  const StageMemory& fullest = prediction.memory.at(prediction.fullest);
  // It fits if it does with all on the host that may be there.
  const MemoryNeed need = need_of(fullest, pageable(question, fullest));
  if (fullest.total > available) {
    prediction.out_of_memory =
        OutOfMemory{program.mesh.first_rank(fullest.stage), fullest.total, available};
  }
  prediction.memory_evidence = memory_evidence_for(question);
  prediction.fit_probability =
      fit_probability(need.predicted, available, prediction.memory_evidence);
  prediction.fit = weighed(fit_of(need, available, question.headroom), prediction.fit_probability,
                           question.plan_is_assumed);
  if (const auto short_of = host_shortage(question, program, prediction.memory)) {
    if (prediction.fit != Fit::no) prediction.out_of_memory = short_of;
    prediction.fit = question.plan_is_assumed ? std::max(prediction.fit, Fit::doubtful) : Fit::no;
    prediction.fit_probability = 0;
  }
}

Time paging_time(const Question& question, const Prediction& prediction) {
  if (!question.plan.optimizer.paged) return Time{};
  Bytes most{};
  for (const StageMemory& each : prediction.memory) most = std::max(most, each.paged);
  return most * 2 / question.cluster.gpu().host_link;
}

std::string words_of(const OutOfMemory& found) {
  const std::string sizes =
      fmt::format("{}, available: {}", format(found.needed), format(found.available));
  switch (found.place) {
    case MemoryPlace::gpu:
      return fmt::format("rank {} needs {}", found.rank, sizes);
    case MemoryPlace::host:
      return "what is offloaded needs host memory of " + sizes;
    case MemoryPlace::drives:
      return "what is offloaded needs drives of " + sizes;
  }
  throw ContractError{"a place outside its enumeration"};
}

}  // namespace orrery::models
