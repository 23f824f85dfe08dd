#pragma once
// The results of a campaign on this machine, and their conversion to a cluster file.

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
#include "hardware/cluster/cluster.hpp"

namespace orrery::calibrate {

/// The machine's GPUs; a profile assumes that all are alike.
struct GpuIdentity {
  std::string name;  // "NVIDIA H200", as its driver reports it
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

/// Launch costs: the host's time for one operation, and the queue's for a small one.
struct LaunchCosts {
  std::optional<Time> forward, backward;      // of a small layer's operations, on the host
  std::optional<Time> small, small_on_queue;  // of one small kernel
  /// A small layer captured as one CUDA graph, the slower of forward and backward: the host's time
  /// for a launch, and the queue's time for one of its kernels.
  std::optional<Time> graph, graph_kernel;
  Time mark{};                        // time of a mark between two kernels
  std::optional<Time> communication;  // of a small collective, on the slowest rank's host
  int communication_ranks = 0;        // 1: a communicator of one rank, a lower bound
};

/// One operation timed in bursts, as points are, and continuously for seconds, as steps run it:
/// under load a GPU lowers its clocks to stay within its power limit.
struct SustainedLoad {
  enum class Of : std::uint8_t { product, attention };
  std::string what;
  Of of = Of::product;
  Time isolated{}, sustained{};   // per operation: medians of bursts, and of the load's last third
  Conditions bursts, conditions;  // during bursts, and under load

  /// Rate under load over that of bursts.
  double share() const { return ratio(isolated, sustained); }
};

/// How fast one core decodes samples of a format.
struct DecodingRate {
  std::string format;     // of models/data/formats.csv
  double per_core = 0;    // in a second: pictures, or tokens of text
  double pixels = 0;      // of a picture; 0: text
  double bytes = 0;       // of an encoded picture, mean
  std::string library{};  // that decoded it; empty: the executor itself
};

struct Findings {
  Machine machine;
  std::optional<GpuIdentity> gpu;  // nothing: the machine's processor was measured
  std::map<models::DType, std::vector<ProductPoint>> products,
      batched;  // per GEMM
  std::vector<GroupedPoint> grouped;
  std::vector<AttentionPoint> attention;
  executor::FusedAttention fused;  // which kernels those calls ran
  /// By kind, "add", and by models::kernel_key, "add 3>1".
  std::map<std::string, std::vector<KernelPoint>> kernels;
  std::vector<CopyPoint> copies;
  LaunchCosts launch;
  std::vector<hardware::Concurrency> concurrency;
  std::vector<NamedOverlap> overlaps;
  std::optional<OverlapTimes> overlap_with_communication;  // with several GPUs only
  std::vector<SustainedLoad> loads;
  std::vector<hardware::CollectiveTable> collectives;
  hardware::Storage storage;
  std::optional<Time> random_read;  // of 4 KiB, one at a time
  std::vector<DecodingRate> decoding;
  Json raw = Json::array();           // every run of every point, as measured
  std::vector<std::string> notes;     // of the device: its own choices
  std::vector<std::string> missing;   // what was not measured, and why
  std::vector<std::string> failures;  // `NAME: WHY`
  int discarded_runs = 0;             // disturbed, or of a throttled GPU
  int disturbed_points = 0;           // kept though every run of them was disturbed
  int discarded_points = 0;           // ... or left out for that
  int points_left_out = 0;            // that the budget did not reach
  Time setting_up{};                  // setting up points: not part of the budget

  bool has_products() const { return !products.empty(); }
};

/// Memory bandwidth, read plus written, of the fastest copy on the device; nothing if none was
/// measured.
std::optional<Bandwidth> copy_rate(const Findings& findings);
/// Bytes per second at the best size, each byte counted once; 0 if none was measured.
double best_copy(const Findings& findings, CopyPath path);
/// Rate under sustained load over that of bursts: the median of the loads of that kind, at most 1;
/// nothing if none was measured.
std::optional<double> sustained_share(const Findings& findings, SustainedLoad::Of of);

/// One fitted curve, as the command prints it.
struct FittedCurve {
  std::string name;  // "gemm fp32", "norm", "all_reduce 2 ranks"
  std::size_t points = 0;
  std::optional<double> leave_out_error_pct;  // nothing: too few points to leave one out
};

struct CalibratedProfile {
  Json cluster;  // a file for `orrery simulate --cluster`
  std::vector<FittedCurve> curves;
};

/// The machine as a cluster of one node: its GPUs, or its cores as devices. A GPU is its catalogue
/// entry, if there is one, with the measured curves in place of the entry's.
/// software  profile of the executor's stack; its launch costs are set to the measured ones (its
///           source says if a single GPU had no peer to communicate with), its attention to the
///           curve of the kernels that ran: "cudnn" if all were cuDNN's, else "orrery"
/// Errors  no GEMM measured: ContractError
CalibratedProfile make_profile(const Findings& findings, Json software);
/// `cluster` with the storage and the decoding that were measured in place of its own, and their
/// source. A store's rate is that of one node.
Json with_measured_files(Json cluster, const Findings& findings);

/// Whether a sample is a point of a table of collectives: an out-of-place time of an operation that
/// plans use, with its size and number of ranks.
bool in_collective_table(const Sample& sample);
/// Tables of imported collectives: out-of-place times with a known number of ranks; the median if a
/// size was measured several times.
std::vector<hardware::CollectiveTable> collective_tables(const std::vector<Sample>& samples);
/// As a cluster's `measured_collectives`.
Json to_json(const std::vector<hardware::CollectiveTable>& tables);

}  // namespace orrery::calibrate
