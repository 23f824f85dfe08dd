#pragma once
// What a campaign on this machine found, and the cluster file that it becomes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/bench/overlap.hpp"
#include "calibrate/bench/telemetry.hpp"
#include "calibrate/fit/attention_curve.hpp"
#include "calibrate/fit/curves.hpp"
#include "calibrate/fit/experts.hpp"
#include "calibrate/machine.hpp"
#include "calibrate/sample.hpp"
#include "executor/device/cuda/attention/fused_attention.hpp"
#include "hardware/cluster.hpp"

namespace orrery::calibrate {

/// The GPUs that were found, all alike as far as a profile can say.
struct GpuIdentity {
  std::string name;  // "NVIDIA H200", as its driver has it
  Bytes memory{};
  int capability = 0;    // 90 is 9.0
  int count = 1;         // of this machine
  std::string versions;  // "CUDA 13.0, driver 580.65.06, cuBLASLt 13.1.0, NCCL 2.28.9"
};

/// Which memory a copy goes from and to.
enum class CopyPath : std::uint8_t { on_device, to_device, from_device, pinned_to, pinned_from };
std::string_view name(CopyPath path);  // "to the device, page-locked"

struct CopyPoint {
  CopyPath path = CopyPath::on_device;
  Bytes size{};
  Time time{};
};

/// What launches cost: a host's time for one operation, and a queue's for a small one.
struct LaunchCosts {
  std::optional<Time> forward, backward;      // of a small layer's operations, on the host
  std::optional<Time> small, small_on_queue;  // of one small kernel
  /// Of a small layer captured as one CUDA graph, the slower of forward and backward: a launch on
  /// the host, and a kernel of it on the queue.
  std::optional<Time> graph, graph_kernel;
  Time mark{};                        // between two kernels
  std::optional<Time> communication;  // of a small collective, on the slowest rank's host
  int communication_ranks = 0;        // 1: a communicator of one rank, a lower bound
};

/// One operation in bursts, as points are timed, and for seconds on end, as steps run it: under
/// load a GPU lowers its clocks to keep its power.
struct SustainedLoad {
  enum class Of : std::uint8_t { product, attention };
  std::string what;
  Of of = Of::product;
  Time isolated{}, sustained{};   // of one: the medians of bursts and of the last third
  Conditions bursts, conditions;  // meanwhile, and under load

  /// Rate under load over that of bursts.
  double share() const { return ratio(isolated, sustained); }
};

struct Findings {
  Machine machine;
  std::optional<GpuIdentity> gpu;  // nothing: the machine's processor was measured
  std::map<models::DType, std::vector<ProductPoint>> products, batched;  // one of a batch
  std::vector<GroupedPoint> grouped;
  std::vector<AttentionPoint> attention;
  executor::FusedAttention fused;  // whose kernels those calls ran
  /// By kind, "add", and by models::kernel_key, "add 3>1".
  std::map<std::string, std::vector<KernelPoint>> kernels;
  std::vector<CopyPoint> copies;
  LaunchCosts launch;
  std::vector<hardware::Concurrency> concurrency;
  std::vector<NamedOverlap> overlaps;
  std::optional<OverlapTimes> overlap_with_communication;  // of several GPUs
  std::vector<SustainedLoad> loads;
  std::vector<hardware::CollectiveTable> collectives;
  hardware::Storage storage;
  Json raw = Json::array();           // every run of every point, as measured
  std::vector<std::string> notes;     // of the device: what it chose by itself
  std::vector<std::string> missing;   // what was not measured, and why
  std::vector<std::string> failures;  // `NAME: WHY`
  int discarded_runs = 0;             // disturbed, or of a throttled GPU
  int disturbed_points = 0;           // kept though every run of them was disturbed
  int discarded_points = 0;           // ... or left out for that
  int points_left_out = 0;            // that the budget did not reach
  Time setting_up{};                  // of points: none of the budget

  bool has_products() const { return !products.empty(); }
};

/// Read and written, of the largest copies on the device; nothing: none was measured.
std::optional<Bandwidth> copy_rate(const Findings& findings);
/// Bytes a second of the best size, one way; 0: none was measured.
double best_copy(const Findings& findings, CopyPath path);
/// Rate for seconds on end over that of bursts: the median of the loads of that kind, 1 at the
/// most; nothing where none was measured.
std::optional<double> sustained_share(const Findings& findings, SustainedLoad::Of of);

/// One fitted curve, as the command prints it.
struct FittedCurve {
  std::string name;  // "gemm fp32", "norm", "all_reduce 2 ranks"
  std::size_t points = 0;
  std::optional<double> leave_out_error_pct;  // nothing: too few points to leave one out
};

struct CalibratedProfile {
  Json cluster;  // `orrery simulate --cluster` takes it as it stands
  std::vector<FittedCurve> curves;
};

/// The machine as a cluster of one node: its GPUs, or its cores as devices. A GPU is the
/// catalogue's entry, where it has one, with the curves that were measured in place of its own.
/// software  profile of the executor's stack; its launches are set to what was measured, which its
///           source says where one GPU had no peer to communicate with; its attention to the curve
///           of the kernels that ran: "cudnn" where all were cuDNN's, else "orrery"
/// Errors  no product measured: ContractError
CalibratedProfile make_profile(const Findings& findings, Json software);

/// Tables of imported collectives (times of groups whose ranks are known, out of place), the
/// median where a size was measured several times.
std::vector<hardware::CollectiveTable> collective_tables(const std::vector<Sample>& samples);
/// As a cluster's `measured_collectives`.
Json to_json(const std::vector<hardware::CollectiveTable>& tables);

}  // namespace orrery::calibrate
