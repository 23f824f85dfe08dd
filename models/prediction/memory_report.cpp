#include "models/prediction/memory_report.hpp"

#include <cmath>

namespace orrery::models {

namespace {

Bytes share(Bytes bytes, double factor) {
  return nearest_count<Bytes>(static_cast<double>(bytes.count()) * factor);
}

/// Communicators that a rank opens: one per axis in use, two for a pipeline.
std::int64_t communicators_of(const Plan& plan) {
  const bool cuts_experts = plan.expert_tensor > 1 && plan.expert_tensor != plan.tensor;
  return (plan.tensor > 1 ? 1 : 0) + (plan.context > 1 ? 1 : 0) + (plan.replicas() > 1 ? 1 : 0) +
         (plan.pipeline > 1 ? 2 : 0) + (plan.expert > 1 ? 2 : 0) + (cuts_experts ? 1 : 0);
}

}  // namespace

void add_memory(const Question& question, Prediction& prediction) {
  const MemoryAllowances& allowed = question.software.memory;
  const Program& program = *prediction.program;
  const std::vector<MemoryPeak> peaks = memory_peaks(program);
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    StageMemory stage;
    stage.stage = program.classes[c].stage;
    stage.program = peaks[c].by_kind;
    stage.context = allowed.context + allowed.workspace +
                    allowed.per_communicator * communicators_of(question.plan);
    const auto of = [&](BufferKind kind) { return stage.program[static_cast<std::size_t>(kind)]; };
    const Bytes dynamic =
        of(BufferKind::activation) + of(BufferKind::staging) + of(BufferKind::workspace);
    stage.fragmentation = share(dynamic, allowed.fragmentation);
    stage.total = total(stage.program) + stage.context + stage.fragmentation;
    prediction.memory.push_back(stage);
    if (stage.total > prediction.memory[prediction.fullest].total) prediction.fullest = c;
    const Bytes available = question.cluster.gpu().memory;
    if (stage.total > available && !prediction.out_of_memory) {
      prediction.out_of_memory =
          OutOfMemory{program.mesh.first_rank(stage.stage), stage.total, available};
    }
  }
  const Bytes needed = prediction.memory.at(prediction.fullest).total;
  const Bytes available = question.cluster.gpu().memory;
  prediction.fit = fit_of(needed, available, question.headroom);
  prediction.fit_probability = fit_probability(needed, available);
}

}  // namespace orrery::models
