#pragma once
// Predicts one training step: how long it takes, where the time goes, how much memory it needs,
// what it costs.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/data/data_lane.hpp"
#include "models/evaluation/priced.hpp"
#include "models/evaluation/step_times.hpp"
#include "models/plan/conflicts.hpp"
#include "models/plan/plan.hpp"
#include "models/prediction/error/uncertainty.hpp"
#include "models/prediction/fit.hpp"
#include "models/prediction/network/network.hpp"
#include "models/pricing/rank_load.hpp"
#include "models/program/memory.hpp"
#include "models/program/program.hpp"
#include "models/schedules/schedule.hpp"
#include "models/software/software.hpp"
#include "sim/words.hpp"

namespace orrery::models {

/// What is asked: a model, cut by a plan, on a cluster, run by a stack.
struct Question {
  Model model;
  Plan plan;
  hardware::Cluster cluster;
  Software software;
  std::vector<std::string> assumptions;  // defaults taken so far
  double headroom = usual_headroom();    // of a GPU's memory, what Fit::yes leaves free
  const Registry<Schedule>* schedules = &builtin_schedules();  // that the plan may name
  NetworkRequest network{};
  /// Nobody stated how it is cut: it is said not to fit only where next to no peak would.
  bool plan_is_assumed = false;
  std::optional<DataRequest> data{};  // nothing: every batch is there when its step begins
};

/// Time by TimeClass; adds up to the step of the slowest rank without its wait for data, exactly.
using Breakdown = std::array<Time, time_class_count>;

/// One part of the way from an ideal machine's step to the predicted one, in the order reported.
struct WaterfallPart {
  std::string name;  // "ideal", "recomputation", "GEMM below peak", ...
  Time time{};
};

/// Memory of one stage's ranks at their peak.
struct StageMemory {
  std::int64_t stage = 0;
  MemoryByKind program{};  // buffers of the Program
  Bytes context{};         // CUDA context, libraries, communicators
  Bytes fragmentation{};
  Bytes total{};
  Bytes paged{};     // optimizer state that a paged optimizer keeps on the host; not in `total`
  MemoryNeed need;   // total, within its bounds
  Bytes reported{};  // the part of total that the stack's log prints

  /// The part of total that depends neither on the schedule nor on the stack's allocator.
  Bytes held() const;
};

/// Whose memory: the GPU's, or that of a node's host or drives, which its ranks share.
enum class MemoryPlace : std::uint8_t { gpu, host, drives };
inline constexpr Words<MemoryPlace, 3> memory_place_words{
    {{MemoryPlace::gpu, "gpu"}, {MemoryPlace::host, "host"}, {MemoryPlace::drives, "drives"}}};

/// A plan that does not fit is a result, not an error.
struct OutOfMemory {
  std::int64_t rank = 0;  // the first of the fullest stage
  Bytes needed{}, available{};
  MemoryPlace place = MemoryPlace::gpu;
};

/// What decides between plans.
struct StepFigures {
  std::optional<OutOfMemory> out_of_memory;  // as predicted: also where `fit` is doubtful
  Fit fit = Fit::yes;                        // of the fullest stage
  double fit_probability = 1;
  Time step{};
  double tokens_per_second = 0;
  double mfu = 0;             // over the dense peak of the GEMM precision
  Energy energy{};            // of GPUs by what they do, and of hosts (power.hpp)
  std::optional<Money> cost;  // of the step, where the cluster has a price
};

/// The predicted step, with the Program and prices that it was evaluated from.
struct Prediction : StepFigures {
  std::shared_ptr<const Program> program;
  PricedProgram priced;  // of *program
  StepTimes times;
  NetworkAnswer network;
  std::optional<DataAnswer> data;  // the lane of its input, where one is stated
  Evidence evidence;               // the published runs nearest to it
  Uncertainty uncertainty;         // of the step
  std::uint32_t slowest = 0;       // rank class
  double model_flops = 0;          // of the whole step: 3 x forward, causal attention at half; of
                                   // frozen weights 2 x, of a frozen reference 1 x on top
  double recomputed_flops = 0;     // on top, by the same convention
  double hfu = 0;                  // as `mfu`
  Breakdown breakdown{};
  Busy busy;  // of the slowest rank
  std::vector<WaterfallPart> waterfall;
  std::vector<StageMemory> memory;  // by stage
  std::size_t fullest = 0;          // stage of the highest total
  Evidence memory_evidence;         // published peaks nearest to it
  std::vector<std::string> assumptions;
  std::int64_t ranks = 0, ranks_simulated = 0;
  /// Wall time; everything else is repeatable.
  double lower_seconds = 0, check_seconds = 0, simulate_seconds = 0;

  double bubble_fraction() const;
  /// The largest part of the breakdown.
  TimeClass bottleneck() const;
  /// What the step waits for data; 0 where no lane is stated.
  Time data_wait() const { return data ? data->wait() : Time{}; }
  /// The name of the largest part, of which waiting for data is one: "data".
  std::string_view bottleneck_name() const;
};

/// Everything that is wrong with a question beyond the plan itself: a format that the GPU lacks, a
/// model that is counted but not simulated, ranks without a network between them.
std::vector<Conflict> conflicts(const Question& question);

/// Predicts one step. A plan that does not fit is predicted all the same and says so.
/// Errors  any conflict: InputError `POINTER: PROBLEM`
///         a Program that `check` refuses: ContractError
Prediction predict(const Question& question);

/// A short prediction, for searches over thousands of plans: only what decides between them.
/// Where the plan does not fit, its times, rates and costs are 0.
struct Estimate : StepFigures {
  Bytes memory{};  // of the fullest stage
};

/// The same numbers as `predict`, without its breakdown, waterfall and assumptions; a plan that
/// does not fit is not timed. The Program is not checked: a search lowers thousands of them.
/// Errors  any conflict: InputError `POINTER: PROBLEM`
Estimate estimate(const Question& question);

/// The Program of a question, for callers that need no prices.
Program lower(const Question& question);

}  // namespace orrery::models
