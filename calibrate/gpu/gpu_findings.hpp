#pragma once
// What a campaign on this machine's GPUs found, and the cluster file that it becomes.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/findings.hpp"
#include "calibrate/gpu/attention_curve.hpp"
#include "calibrate/gpu/work_together.hpp"
#include "executor/device/cuda/attention/fused_attention.hpp"

namespace orrery::calibrate {

/// The GPUs that were found, all alike as far as a profile can say.
struct GpuIdentity {
  std::string name;  // "NVIDIA H200", as its driver has it
  Bytes memory{};
  int capability = 0;    // 90 is 9.0
  int count = 1;         // of this machine
  std::string versions;  // "CUDA 13.0, driver 580.65.06, cuBLASLt 13.1.0, NCCL 2.28.9"
};

struct CopyPoint {
  std::string way;  // "on the device", "to the device", "to the device, page-locked", "from ..."
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
  int communication_ranks = 0;        // 1: a communicator of one rank, the least that one costs
};

struct GpuFindings {
  Machine machine;
  GpuIdentity gpu;
  std::map<models::DType, std::vector<ProductPoint>> products, batched;
  std::vector<GroupedPoint> grouped;
  std::vector<AttentionPoint> attention;
  executor::FusedAttention fused;                           // whose kernels those calls ran
  std::map<std::string, std::vector<KernelPoint>> kernels;  // as in Findings
  std::vector<CopyPoint> copies;
  LaunchCosts launch;
  std::vector<NamedBeside> beside;
  std::optional<Beside> beside_communication;  // a product and an all-reduce of several GPUs
  std::vector<Load> loads;
  std::vector<hardware::CollectiveTable> collectives;
  Json raw = Json::array();           // every run of every point, as measured
  std::vector<std::string> notes;     // of the device: what it chose by itself
  std::vector<std::string> missing;   // what was not measured, and why
  std::vector<std::string> failures;  // `NAME: WHY`
  int discarded_runs = 0;             // of a throttled GPU
  int discarded_points = 0;           // that it was throttled for all along
  int points_left_out = 0;            // that the budget did not reach
  Time setting_up{};                  // of points: none of the budget
};

/// Rate for seconds on end over that of bursts: the median of the loads of that kind, 1 at the
/// most; nothing where none was measured.
std::optional<double> sustained_share(const GpuFindings& findings, Load::Of of);

/// The machine as a cluster of one node with its GPUs: the catalogue's entry where it has them,
/// with the curves that were measured in place of its own.
/// software  profile of the executor's stack on GPUs; its launches are set to what was measured,
///           which its source says where one GPU had nobody to talk to; its attention to the curve
///           of the kernels that ran: "cudnn" where all were cuDNN's, else "orrery"
/// Errors  no product measured: ContractError
Profile make_profile(const GpuFindings& findings, Json software);

}  // namespace orrery::calibrate
