#pragma once
// How a prediction evaluates the network between nodes, and the result.
//   static   each collective shares links only with the same collective of other groups; used by
//            searches
//   events   collectives and transfers share links with concurrent traffic
//   maps     events were asked for, but no link can be filled: evaluating maps gives the same
// Leaves out what traffic.hpp leaves out.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/evaluation/traffic/evaluate.hpp"
#include "models/network/collectives/nccl_settings.hpp"
#include "models/network/placement.hpp"
#include "models/pricing/jitter.hpp"
#include "sim/words.hpp"

namespace orrery::models {

class FabricGraph;

enum class NetworkMode : std::uint8_t { automatic, fixed, events };
inline constexpr Words<NetworkMode, 3> network_mode_words{{{NetworkMode::automatic, "auto"},
                                                           {NetworkMode::fixed, "static"},
                                                           {NetworkMode::events, "events"}}};

/// Which node of the cluster each of the plan's nodes is; ranks fill the plan's nodes in order.
struct NodeOrder {
  std::optional<std::uint64_t> scattered;  // seed of a random order
  std::vector<std::int64_t> nodes;         // by the plan's node; empty: as numbered
  AxisOrder axes;                          // order of mesh axes in which ranks are numbered

  bool contiguous() const { return !scattered && nodes.empty(); }
};

enum class PerturbedPart : std::uint8_t { gpu, node, nic, link, packet_switch };
inline constexpr Words<PerturbedPart, 5> perturbed_part_words{
    {{PerturbedPart::gpu, "gpu"},
     {PerturbedPart::node, "node"},
     {PerturbedPart::nic, "nic"},
     {PerturbedPart::link, "link"},
     {PerturbedPart::packet_switch, "switch"}}};

/// A part of the cluster that is slower than its kind.
struct Perturbation {
  PerturbedPart kind = PerturbedPart::gpu;
  std::string at;          // "node3/gpu1", "node3", "node3/nic1", "leaf0 to spine2", "spine2"
  double rate = 1;         // speed or bandwidth, as a share of the usual
  Time from{};             // of links and NICs: when in the step it begins
  std::optional<Time> to;  // when it ends; nullopt: with the step
  std::string pointer;     // where the input states it
};

struct Question;
struct Prediction;

/// Another job on the same fabric. Its first step begins with ours, each further one when the one
/// before has ended.
struct JobRequest {
  std::string name;                          // of its scenario
  std::shared_ptr<const Question> question;  // on our cluster
  std::vector<std::int64_t> nodes;           // in the order in which its ranks fill them
  std::string pointer;                       // where the input states it
};

/// Source  models/software/nanotron.json: 49 us of jitter for each rank and collective, fitted to
/// the
///         runs of the Ultrascale Playbook
inline constexpr Time usual_launch_delay{49'000'000};

/// Samples of one step: in each, every transfer and collective is launched later by its own random
/// delay, so that the answer does not depend on ranks in perfect lockstep. Equal draws in all
/// questions about one Program.
struct LaunchPhases {
  int count = 0;  // 0: one evaluation, without delays
  int first = 0;  // number of the first sample
  std::uint64_t seed = 1;
  Time delay = usual_launch_delay;  // mean of the exponential delays
};

/// What a question asks of the network.
struct NetworkRequest {
  std::string file;  // that states all of it; empty: none
  NetworkMode mode = NetworkMode::automatic;
  LaunchPhases phases;
  NodeOrder order;
  std::vector<Perturbation> perturbations;
  std::optional<KernelJitter> jitter;  // of every kernel
  std::vector<JobRequest> jobs;
  std::optional<NcclSettings> collectives;  // NCCL's tuner chooses; nullopt: the fastest runs

  /// A pointer with its file, as errors name it.
  std::string place(const std::string& pointer) const {
    return file.empty() ? pointer : file + ":" + pointer;
  }
  /// Settings of NCCL's tuner, which chooses algorithms; null: the fastest runs.
  const NcclSettings* tuner() const { return collectives ? &*collectives : nullptr; }
  /// Is there anything that only events can answer?
  bool needs_events() const {
    return !order.contiguous() || !perturbations.empty() || !jobs.empty() || phases.count > 0;
  }
  /// Does `auto` choose events? Also for jitter, so that all perturbations compare with each other.
  bool prefers_events() const { return needs_events() || jitter; }
};

/// Equal links whose traffic demanded more than their capacity.
struct FullLinks {
  std::string name;  // the first of them
  std::uint32_t alike = 0;
  Time overloaded{};
};

/// Step times of another job next to ours.
struct JobAnswer {
  std::string name;
  std::int64_t gpus = 0;
  Time alone{};               // a step with all links to itself
  bool shares_links = false;  // with ours, or with a job that does
  std::optional<Time> step;   // mean of those that ended during ours; nullopt: none did
};

/// Time that a group or channel lost to concurrent traffic on the links that limited it: of its
/// replicas, the one that lost most.
struct TrafficLoss {
  std::string name;  // "dp of stage 3", "pp_f from stage 3"
  Time lost{};
  std::vector<std::pair<std::string, double>> to;  // shares of 1, largest first
};

/// Steps of the phases that were asked for. Contention is each one's step beyond that with the same
/// delays and every transfer alone.
struct PhasesAnswer {
  LaunchPhases asked;
  std::vector<Time> steps, contention, from_jobs;  // by phase
  std::size_t representative = 0;  // whose times are the prediction's: nearest to the mean
};

/// How the network was evaluated, and what sharing it cost the step.
struct NetworkAnswer {
  std::string evaluation = "static";
  std::string why;
  Time lower_bound{};  // the step if nothing shared a link: no step with traffic is shorter
  Time contention{};   // step time beyond that with every transfer alone
  Time jitter{};       // step time that varying kernels cost
  Time from_jobs{};    // part of contention: by how much the step is shorter without other jobs
  std::vector<JobAnswer> jobs;
  std::vector<FullLinks> links;     // longest first
  std::vector<TrafficLoss> losses;  // most first
  PhasesAnswer phases;              // empty unless asked for
  std::size_t rank_classes = 0;     // evaluated
  double seconds = 0;               // wall time: routes, folding, evaluation
};

/// GPUs that a plan may fill: those of the nodes that its placement lists, or those that other jobs
/// leave, or all.
std::int64_t free_gpus(const hardware::Cluster& cluster, const NetworkRequest& network);

/// The site of a question: its fabric with all perturbations, and where ranks of the question and
/// of its other jobs run. The caller sets the jobs' prices.
/// Errors  a node that two jobs want, a node, GPU, NIC, link or switch that does not exist:
///         InputError at its pointer
NetworkSite site_of(const Question& question, std::shared_ptr<const FabricGraph> fabric);

/// The step if no transfer shared a link with anything; sets `network.lower_bound`.
void add_lower_bound(const Question& question, Prediction& result);

/// Prices and evaluates the Program in the mode that was asked for; sets `priced`, `times` and
/// `network`.
/// Errors  what cannot be simulated although it was asked for: InputError
void add_network_times(const Question& question, Prediction& result);

}  // namespace orrery::models
