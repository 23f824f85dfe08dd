#pragma once
// How a prediction treats the network between nodes, and what it found there.
//   static   every collective alone but for its siblings; the evaluation of a search
//   events   collectives and transfers share links with what runs concurrently
//   maps     events were asked for, but no link can be filled: the sweep of maps says the same
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
  AxisOrder axes;                          // in which ranks are counted

  bool contiguous() const { return !scattered && nodes.empty(); }
};

enum class PerturbedPart : std::uint8_t { gpu, node, nic, link, packet_switch };
inline constexpr Words<PerturbedPart, 5> perturbed_part_words{
    {{PerturbedPart::gpu, "gpu"},
     {PerturbedPart::node, "node"},
     {PerturbedPart::nic, "nic"},
     {PerturbedPart::link, "link"},
     {PerturbedPart::packet_switch, "switch"}}};

/// Something that is slower than its kind.
struct Perturbation {
  PerturbedPart kind = PerturbedPart::gpu;
  std::string at;          // "node3/gpu1", "node3", "node3/nic1", "leaf0 to spine2", "spine2"
  double rate = 1;         // of what it has otherwise
  Time from{};             // of links and NICs: in the step
  std::optional<Time> to;  // nothing: to its end
  std::string pointer;     // where it is written
};

struct Question;
struct Prediction;

/// Another job on the same fabric. Its first step begins with ours, each further one where the one
/// before has ended.
struct JobRequest {
  std::string name;                          // of its scenario
  std::shared_ptr<const Question> question;  // on our cluster
  std::vector<std::int64_t> nodes;           // of it, in the order in which its ranks fill them
  std::string pointer;                       // where it is written
};

struct NetworkRequest {
  std::string file;  // in which all of it is written; empty: in none
  NetworkMode mode = NetworkMode::automatic;
  NodeOrder order;
  std::vector<Perturbation> perturbations;
  std::optional<KernelJitter> jitter;  // of every kernel
  std::vector<JobRequest> jobs;
  std::optional<NcclSettings> collectives;  // NCCL's tuner chooses; nothing: the fastest is run

  /// A pointer with its file, as errors name it.
  std::string place(const std::string& pointer) const {
    return file.empty() ? pointer : file + ":" + pointer;
  }
  /// Who chooses how collectives run, as prices are asked.
  const NcclSettings* tuner() const { return collectives ? &*collectives : nullptr; }
  /// Is there anything that only events can answer?
  bool particular() const { return !order.contiguous() || !perturbations.empty() || !jobs.empty(); }
};

/// Links of one kind over whose capacity traffic wanted to go.
struct FullLinks {
  std::string name;  // the first of them
  std::uint32_t alike = 0;
  Time overloaded{};
};

/// How another job fared next to ours.
struct JobAnswer {
  std::string name;
  std::int64_t gpus = 0;
  Time alone{};               // a step with all links to itself
  bool shares_links = false;  // with ours, or with a job that does
  std::optional<Time> step;   // on average over those that ended during ours; nothing: none did
};

/// All that a group or channel lost to what ran concurrently on the links that limited it: of its
/// replicas, the one that lost most.
struct TrafficLoss {
  std::string name;  // "dp of stage 3", "pp_f from stage 3"
  Time lost{};
  std::vector<std::pair<std::string, double>> to;  // shares of 1, largest first
};

struct NetworkAnswer {
  std::string evaluation = "static";
  std::string why;
  Time contention{};  // of the step, beyond the same one with every transfer alone
  Time jitter{};      // of the step, what kernels that vary cost it
  Time from_jobs{};   // of contention, what it would be shorter by without the other jobs
  std::vector<JobAnswer> jobs;
  std::vector<FullLinks> links;     // longest first
  std::vector<TrafficLoss> losses;  // most first
  std::size_t rank_classes = 0;     // evaluated
  double seconds = 0;               // wall time: routes, folding, evaluation
};

/// GPUs that a plan may fill: those of the nodes that its placement lists, or those that other jobs
/// leave, or all.
std::int64_t free_gpus(const hardware::Cluster& cluster, const NetworkRequest& network);

/// Where the ranks of a question and of its jobs run on its fabric, with what is slower there; the
/// jobs' prices are left to the caller.
/// Errors  a node that two jobs want, a node, GPU, NIC, link or switch that does not exist:
/// InputError at its pointer
NetworkSite site_of(const Question& question, const Program& program,
                    std::shared_ptr<const FabricGraph> fabric);

/// Times the priced Program as asked; `result.priced` is then priced for that.
/// Errors  what cannot be simulated although it was asked for: InputError
void add_network_times(const Question& question, Prediction& result);

}  // namespace orrery::models
