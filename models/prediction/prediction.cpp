#include "models/prediction/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <utility>

#include "models/lowering/lower.hpp"
#include "models/model/operation_list.hpp"
#include "models/operations/listed.hpp"
#include "models/operations/quantisation.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/precision_formats.hpp"
#include "models/prediction/breakdown.hpp"
#include "models/prediction/error/extrapolation.hpp"
#include "models/prediction/error/fallback_spread.hpp"
#include "models/prediction/flops.hpp"
#include "models/prediction/fused_attention.hpp"
#include "models/prediction/host_memory.hpp"
#include "models/prediction/limits.hpp"
#include "models/prediction/listed_steps.hpp"
#include "models/prediction/lower_bound.hpp"
#include "models/prediction/lowered_step.hpp"
#include "models/prediction/memory_report.hpp"
#include "models/prediction/power.hpp"
#include "models/prediction/stage_cut.hpp"
#include "models/pricing/price.hpp"
#include "models/program/opcodes.hpp"
#include "sim/input/units.hpp"

namespace orrery::models {

double Prediction::bubble_fraction() const {
  return ratio(breakdown[static_cast<std::size_t>(TimeClass::bubble)], step);
}

TimeClass Prediction::bottleneck() const {
  const auto largest = std::ranges::max_element(breakdown);
  return static_cast<TimeClass>(largest - breakdown.begin());
}

std::string_view Prediction::bottleneck_name() const {
  const TimeClass largest = bottleneck();
  return data_wait() > breakdown[static_cast<std::size_t>(largest)] ? "data" : name(largest);
}

namespace {

/// Why the GPU cannot multiply in the plan's precision as the software would; empty if it can.
std::string of_precision(const Question& question) {
  const hardware::Gpu& gpu = question.cluster.gpu();
  const Precision precision = question.plan.formats.precision;
  const Quantisation* how = quantisation_of(precision);
  const bool decodes = question.software.runs.decodes_blocks;
  for (const DType type : {multiplied_in(precision, decodes), storage_dtype(precision)}) {
    if (gpu.peak(type) && gpu.gemm.count(type) > 0) continue;
    return gpu.name + " does not support " + std::string{hardware::name(type)};
  }
  const bool scales = how != nullptr && how->in_hardware && !decodes;
  if (!scales || gpu.generation.block_scales) return {};
  return fmt::format("{} is not known to support GEMMs with block scales, which {} needs", gpu.name,
                     name(precision));
}

/// Why the plan cannot have its attention kernel; empty if it can.
std::string of_attention(const hardware::Gpu& gpu, AttentionKernel chosen) {
  const bool unpriced = chosen == AttentionKernel::of_stack || chosen == AttentionKernel::unfused;
  const std::string kernel{word_of(attention_kernel_words, chosen)};
  if (unpriced || gpu.attention.count(kernel) > 0) return {};
  std::string known;
  for (const auto& [other, curve] : gpu.attention) known += " " + other;
  return fmt::format("{} has no attention kernel {}; known:{}", gpu.name, kernel, known);
}

/// What the GPU and the stack's kernels lack for the plan.
void check_kernels(const Question& question, std::vector<Conflict>& found) {
  const hardware::Gpu& gpu = question.cluster.gpu();
  if (std::string why = of_precision(question); !why.empty()) {
    found.push_back({"/plan/precision", std::move(why)});
  }
  const AttentionKernel chosen = question.plan.kernels.attention;
  if (std::string why = of_attention(gpu, chosen); !why.empty()) {
    found.push_back({"/plan/attention", std::move(why)});
  }
  const bool attends =
      attends_over_context(question.software, gpu, question.plan.formats.precision, chosen);
  if (question.plan.context > 1 && !attends) {
    found.push_back({"/plan/context", "context parallelism needs a fused attention kernel, which " +
                                          question.software.name + " does not have on " + gpu.name +
                                          " in " +
                                          std::string{name(question.plan.formats.precision)}});
  }
  const std::string_view kernel = question.software.attention(gpu.generation.name, chosen);
  const std::string narrow = attention_curve(kernel, hardware::DType::fp8);
  if (question.plan.formats.low_precision_attention && gpu.attention.count(narrow) == 0) {
    found.push_back({"/plan/low_precision_attention",
                     fmt::format("{} has no attention kernel {}", gpu.name, narrow)});
  }
  if (question.plan.kernels.graphs && question.software.host.synchronous) {
    found.push_back(
        {"/plan/cuda_graphs",
         fmt::format("cuda_graphs needs asynchronous launches; the launches of {} are synchronous",
                     question.software.name)});
  }
}

/// What the plan offloads needs a link to the host, or rates of the storage.
void check_offload(const Question& question, std::vector<Conflict>& found) {
  const hardware::Gpu& gpu = question.cluster.gpu();
  if (question.plan.offload.state != Offload::none && gpu.host_link.count() <= 0) {
    found.push_back({"/plan/offload",
                     fmt::format("offload needs a host_link, which {} does not state", gpu.name)});
  }
  if (question.plan.optimizer.paged && gpu.host_link.count() <= 0) {
    found.push_back(
        {"/plan/paged_optimizer",
         fmt::format("paged_optimizer needs a host_link, which {} does not state", gpu.name)});
  }
  if (question.plan.offload.layers > 0 && gpu.host_link.count() <= 0) {
    found.push_back(
        {"/plan/offload_layers",
         fmt::format("offload_layers needs a host_link, which {} does not state", gpu.name)});
  }
  const hardware::Storage& storage = question.cluster.storage;
  const bool in_files = question.plan.offload.device == OffloadDevice::nvme;
  if (in_files && !(storage.read && storage.write)) {
    found.push_back(
        {"/plan/offload_device",
         "offload_device nvme needs the read and write rates of the cluster's storage, as in --set "
         "'/cluster/storage={\"read\": \"20 GB/s\", \"write\": \"10 GB/s\"}'"});
  }
}

/// Formats of a list's operations that the GPU lacks, and files and copies in the way of the step
/// without a rate.
void check_list(const Question& question, std::vector<Conflict>& found) {
  const OperationList& list = *question.model.list;
  const hardware::Cluster& cluster = question.cluster;
  const ListedSizes sizes{.batch = question.plan.batch.micro, .gpus = question.plan.gpus()};
  std::vector<std::int64_t> seen;
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    if (std::ranges::count(seen, list.kind_of(layer)) > 0) continue;
    seen.push_back(list.kind_of(layer));
    for (const ListedOperation& each : list.operations(list.kind_of(layer), sizes)) {
      const bool product = each.is_matrix() && each.format;
      if (product && !cluster.gpu().peak(*each.format)) {
        found.push_back(
            {"/model", fmt::format("'{}' computes in {}, which {} does not support", each.name,
                                   hardware::name(*each.format), cluster.gpu().name)});
        return;
      }
      if (each.ahead > 0 || each.never_waits) continue;
      const auto rate = each.writes_files ? cluster.storage.write : cluster.storage.read;
      if (each.kind == ListedKind::file && !rate) {
        found.push_back({"/cluster/storage",
                         fmt::format("'{}' is in the way of the step and needs the storage's rate, "
                                     "as in --set '/cluster/storage={{\"read\": \"20 GB/s\", "
                                     "\"write\": \"10 GB/s\"}}'",
                                     each.name)});
        return;
      }
      const bool copies = each.kind == ListedKind::transfer && each.to != "neighbours";
      if (copies && cluster.gpu().host_link.count() <= 0) {
        found.push_back({"/cluster/node/gpu/host_link",
                         fmt::format("'{}' needs a host_link, which {} does not state", each.name,
                                     cluster.gpu().name)});
        return;
      }
    }
  }
}

}  // namespace

std::vector<Conflict> conflicts(const Question& question) {
  std::vector<Conflict> found;
  if (question.model.not_simulated) {
    found.push_back({"/model", *question.model.not_simulated});
    return found;
  }
  // Spare nodes may be idle; a placement with too few nodes is refused where placements are
  // checked.
  const NetworkRequest& network = question.network;
  std::int64_t gpus = free_gpus(question.cluster, network);
  if (!network.order.nodes.empty()) gpus = question.plan.gpus();
  if (!network.jobs.empty()) gpus = std::min(gpus, question.plan.gpus());
  for (Conflict& each : conflicts(question.plan, question.model, gpus, *question.schedules)) {
    found.push_back({"/plan" + each.pointer, std::move(each.problem)});
  }
  check_kernels(question, found);
  check_offload(question, found);
  if (question.model.list) check_list(question, found);
  const hardware::Cluster& cluster = question.cluster;
  if (cluster.nodes > 1 && (cluster.node.nics == 0 || cluster.nic_bandwidth().count() <= 0)) {
    found.push_back({"/cluster/fabric", "the nodes have no network between them"});
  }
  return found;
}

namespace {

/// A stated lane of the input stands for the loader of the model's own list.
void drop_loader(const BlockInputs& inputs, Program& program) {
  const OperationList& list = *inputs.model.list;
  std::set<std::string> loads;
  for (std::int64_t layer = 0; layer < list.layers(); ++layer) {
    for (const ListedOperation& each : list.operations(list.kind_of(layer), listed_sizes(inputs))) {
      if (each.ahead > 0) loads.insert(each.name);
    }
  }
  std::erase_if(program.ahead, [&](const AheadWork& each) { return loads.contains(each.name); });
}

}  // namespace

Program lower(const Question& question) {
  if (question.plan.stages.by_time) {
    Question cut = question;
    cut.plan.stages.by_time = false;
    cut.plan.stages.layers = cut_stages(question).layers;
    return lower(cut);
  }
  const BlockInputs inputs{question.model,
                           question.plan,
                           question.software,
                           question.cluster.gpu().generation.name,
                           question.cluster.node.gpus,
                           question.schedules};
  Program program = lower(inputs);
  if (question.data && question.model.list) drop_loader(inputs, program);
  return program;
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void add_times(const Question& question, Prediction& result) {
  add_network_times(question, result);
  result.step = with_unexplained(result.times.step, question.software);
  const Time paging = paging_time(question, result);
  result.step += paging;
  for (Time& each : result.network.phases.steps) {
    each = with_unexplained(each, question.software) + paging;
  }
}

/// The step waits for what of its input is not ready; so does each of its quantiles, next to a lane
/// that is as much faster or slower.
void add_data(const Question& question, Prediction& result) {
  if (!question.data) return;
  const DataRequest& request = *question.data;
  const DataDemand demand = demand_of(request, question.plan, question.cluster.node.gpus);
  const auto with_data = [&](Time compute, double quantile) {
    return data_lane(request, demand, compute, {.all = std::exp(quantile * request.spread)}).step;
  };
  result.data = data_lane(request, demand, result.step);
  result.step = result.data->step;
  for (Time& each : result.network.phases.steps) each = with_data(each, 0);
  result.network.lower_bound = with_data(result.network.lower_bound, 0);
  constexpr double p90 = 1.2815515655446004;  // of a normal variable
  Uncertainty& range = result.uncertainty;
  range = {with_data(range.p10, -p90), result.step, with_data(range.p90, p90)};
}

void add_uncertainty(const Question& question, const TargetCounts& counts, Prediction& result) {
  const double of_curves = std::hypot(spread_beyond_range(question, result, counts),
                                      spread_of_fallbacks(question, result, counts));
  result.evidence = evidence_for(question);
  result.uncertainty =
      uncertainty_of(result.step, result.evidence, result.priced.fallback_curves, of_curves);
}

void add_rates(const Question& question, Prediction& result) {
  const Plan& plan = question.plan;
  const double tokens =
      static_cast<double>(plan.batch.global) * static_cast<double>(plan.batch.seq_len);
  const double step = seconds(result.step);
  if (question.model.list && !question.model.list->trains()) {
    result.tokens_per_second = 1 / step;  // steps of the loop; its FLOPs are no GEMMs
    return;
  }
  result.tokens_per_second = tokens / step;
  result.model_flops = training_flops_per_token(question.model, plan) * tokens;
  result.recomputed_flops =
      recomputed_flops_per_token(question.model, plan, recomputing_micro_batches(*result.program)) *
      tokens;
  const FlopRate peak = *question.cluster.gpu().peak(
      multiplied_in(plan.formats.precision, question.software.runs.decodes_blocks));
  const double ideal_rate = peak.count() * static_cast<double>(plan.gpus());
  result.mfu = result.model_flops / step / ideal_rate;
  result.hfu = (result.model_flops + result.recomputed_flops) / step / ideal_rate;
}

void add_costs(const Question& question, const std::vector<TargetCounts>& counts,
               Prediction& result) {
  const hardware::Cluster& cluster = question.cluster;
  const auto gpus = static_cast<double>(question.plan.gpus());
  result.energy = energy_of(result.priced, cluster, question.plan.gpus(), result.step, counts);
  if (cluster.price_per_gpu_hour) {
    result.cost = (*cluster.price_per_gpu_hour * gpus) * result.step;
  }
  require_possible(question, result);
}

/// The rank class that ends last, or the one whose NIC bounds the step.
std::uint32_t slowest_of(const Prediction& result) {
  if (result.times.scheduled() < result.times.step) return result.priced.bound.rank_class;
  const auto last = std::ranges::max_element(
      result.times.ranks,
      [](const QueueTimes& a, const QueueTimes& b) { return a.last() < b.last(); });
  return static_cast<std::uint32_t>(last - result.times.ranks.begin());
}

std::string bound_note(const Prediction& result) {
  const StepBound& bound = result.priced.bound;
  const Time scheduled = result.times.scheduled();
  if (!bound.queue.empty()) {
    return fmt::format(
        "/model: queue '{}' of the loader needs {} for each step, longer than the schedule's {}; "
        "the difference of {} is reported as {}",
        bound.queue, format(bound.time), format(scheduled), format(bound.time - scheduled),
        name(bound.part));
  }
  return fmt::format(
      "/cluster/fabric: a rank of stage {} needs its NIC for {}, longer than the schedule's {}; "
      "the difference of {} is reported as {}",
      result.program->classes[bound.rank_class].stage, format(bound.time), format(scheduled),
      format(bound.time - scheduled), name(bound.part));
}

/// Ranks of a context group with whole chunks need no other rank's keys.
void note_chunks(const Question& question, std::vector<std::string>& assumptions) {
  const Plan& plan = question.plan;
  const std::int64_t chunk = longest_chunk(question.model);
  if (context_split(plan).pieces == 1 || !attends_within_rank({.chunk = chunk}, plan)) return;
  assumptions.push_back(
      fmt::format("/plan/context: layers that attend within chunks of {} tokens exchange no keys, "
                  "which are all on the rank of their queries",
                  chunk));
}

std::string unexplained_note(const Software& software) {
  return fmt::format(
      "/software/unexplained: the runs that {} was fitted to took {:+.1f} % beyond what its "
      "numbers explain; that is part of the step, as 'unexplained'",
      software.name, 100 * (software.unexplained - 1));
}

void refuse_conflicts(const Question& question) {
  const std::vector<Conflict> found = conflicts(question);
  if (!found.empty()) throw InputError{found.front().pointer, found.front().problem};
}

/// The question with its stages cut by time, and an assumption that states the cut.
Question with_cut_stages(const Question& question) {
  const StageCut cut = cut_stages(question);
  Question settled = question;
  settled.plan.stages.by_time = false;
  settled.plan.stages.layers = cut.layers;
  settled.assumptions.push_back(
      fmt::format("/plan/stage_layers: cut by time: {}; the longest chunk takes {} per "
                  "micro-batch, {} when cut evenly by layers",
                  fmt::join(cut.layers, ":"), format(cut.longest), format(cut.even)));
  return settled;
}

}  // namespace

namespace {

Prediction estimated(const Question& question) {
  refuse_conflicts(question);
  Prediction result;
  result.program = std::make_shared<const Program>(lower(question));
  add_memory(question, result);
  if (!result.out_of_memory) {
    add_times(question, result);
    add_data(question, result);
    add_rates(question, result);
    add_costs(question, result.priced.counts, result);
  }
  return result;
}

Estimate figures_of(const Prediction& result) {
  return {result, result.memory[result.fullest].total};
}

std::vector<JointTimes> joints_of(const PricedProgram& priced) {
  const Program& program = *priced.program;
  std::vector<JointTimes> found;
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) {
    const PricedOperation* last = nullptr;
    Time occupied{}, hidden{};
    bool reduces = false;
    for (const Instruction& each : program.classes[c].instructions) {
      if (!is_joint(each)) continue;
      if (last == nullptr) {
        hidden = priced.collectives[each.target].lead;
        reduces = each.op == Opcode::reduce_gradient;
      }
      last = &priced.collectives[each.target];
      occupied += last->occupied();
    }
    if (last != nullptr) occupied -= last->trail;
    found.push_back({.all = priced.carried_by(c) + occupied,
                     .after_first = reduces ? occupied - hidden : Time{}});
  }
  return found;
}

}  // namespace

Estimate estimate(const Question& question) {
  return figures_of(estimated(question));
}

EstimateWithJoints estimate_with_joints(const Question& question) {
  const Prediction result = estimated(question);
  if (result.out_of_memory) return {figures_of(result), {}};
  return {figures_of(result), joints_of(result.priced)};
}

Time step_without_sharing(const Question& question) {
  refuse_conflicts(question);
  Prediction result;
  result.program = std::make_shared<const Program>(lower(question));
  add_lower_bound(question, result);
  result.step = with_unexplained(result.network.lower_bound, question.software);
  add_data(question, result);
  return result.step;
}

namespace {

Prediction predict_one(const Question& question) {
  Prediction result;
  result.assumptions = question.assumptions;
  note_chunks(question, result.assumptions);
  for (const std::string& note : {host_note(question), host_adam_note(question)}) {
    if (!note.empty()) result.assumptions.push_back(note);
  }
  const Clock::time_point begin = Clock::now();
  result.program = std::make_shared<const Program>(lower(question));
  result.lower_seconds = seconds_since(begin);
  const Clock::time_point lowered = Clock::now();
  check(*result.program);
  result.check_seconds = seconds_since(lowered);
  const Clock::time_point checked = Clock::now();
  add_memory(question, result);
  add_times(question, result);
  const Time paging = result.step - with_unexplained(result.times.step, question.software);
  add_lower_bound(question, result);
  Time& bound = result.network.lower_bound;
  bound = with_unexplained(bound, question.software) + paging;
  result.slowest = slowest_of(result);
  if (result.times.scheduled() < result.times.step) {
    result.assumptions.push_back(bound_note(result));
  }
  if (question.software.unexplained != 1) {
    result.assumptions.push_back(unexplained_note(question.software));
  }
  if (question.data && question.model.list) {
    result.assumptions.push_back("/data: in place of what the model's own list loads");
  }
  result.breakdown = breakdown_of(result.priced, result.times, result.slowest);
  result.breakdown[static_cast<std::size_t>(TimeClass::other)] += result.step - result.times.step;
  const std::vector<TargetCounts>& counts = result.priced.counts;
  add_uncertainty(question, counts[result.slowest], result);
  add_data(question, result);
  result.busy =
      busy_of(load_of(result.priced, result.slowest), std::max(result.times.step, result.step));
  add_rates(question, result);
  add_costs(question, counts, result);
  result.waterfall = waterfall_of(question, result);
  result.ranks = question.plan.gpus();
  result.ranks_simulated = static_cast<std::int64_t>(result.network.rank_classes);
  result.simulate_seconds = seconds_since(checked);
  return result;
}

}  // namespace

Prediction predict(const Question& question) {
  refuse_conflicts(question);
  if (question.plan.stages.by_time) return predict(with_cut_stages(question));
  return question.model.list ? mean_step(question, predict_one) : predict_one(question);
}

std::size_t LoweredStep::bytes() const {
  std::size_t sum = sizeof(Program);
  for (const Block& block : program->blocks) {
    sum += block.operations.size() * (sizeof(Operation) + 64) +
           block.operands.size() * (sizeof(Operand) + 64);
  }
  for (const RankClass& ranks : program->classes) {
    sum += ranks.instructions.size() * sizeof(Instruction);
  }
  for (const TargetCounts& each : counts) {
    sum +=
        (each.phases.size() + each.sends.size() + each.receives.size() + each.collectives.size()) *
        sizeof(std::int64_t);
  }
  return sum;
}

bool lowers_once(const Question& question) {
  const NetworkRequest& network = question.network;
  const bool events = network.mode == NetworkMode::events || network.prefers_events();
  // Steps of several kinds, and steps that wait for their input, are predicted whole.
  return !question.plan.stages.by_time && !events && !question.model.list && !question.data;
}

LoweredStep lower_step(const Question& question) {
  refuse_conflicts(question);
  LoweredStep lowered{
      .program = std::make_shared<const Program>(lower(question)), .counts = {}, .peaks = {}};
  check(*lowered.program);
  lowered.counts = counts_of(*lowered.program);
  lowered.peaks = memory_peaks(*lowered.program);
  return lowered;
}

Prediction predict(const Question& question, const LoweredStep& lowered) {
  Prediction result;
  result.program = lowered.program;
  add_memory(question, lowered.peaks, result);
  add_times(question, result);
  result.slowest = slowest_of(result);
  add_uncertainty(question, lowered.counts[result.slowest], result);
  add_rates(question, result);
  add_costs(question, lowered.counts, result);
  result.ranks = question.plan.gpus();
  result.ranks_simulated = static_cast<std::int64_t>(result.network.rank_classes);
  return result;
}

}  // namespace orrery::models
