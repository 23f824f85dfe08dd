#pragma once
// Puts a time on everything in a Program: kernels by the GPU's curves and the stack's derates,
// collectives by their cost models, launches by the stack's host costs. Other traffic on the same
// links is left out, except for sibling groups of the same collective.

#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/pricing/wire.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Time of one kernel in a long step of this stack on this GPU: as measured there, else by its
/// curves.
/// at_once  ranks of its machine that compute at the same time, where they slow each other down
Time kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software,
                 int at_once = 1);

/// Time of Adam on the host, whose memory bounds it: as a node states it, as a processor was
/// calibrated, or at the rate of the machine that was measured, and no more than that share of the
/// host's memory bandwidth where a node states it.
///   t = bytes * at_once / min(rate, share * host_memory_bandwidth)
/// at_once  ranks of one machine
/// Source   `host_adam` of hardware/measured/rates.csv. Faster memory is not taken to be faster:
///          ZeRO-3 with the optimizer on the hosts of eight B200, of 2.8 times that bandwidth, is
///          predicted 7 to 12 % slow at that rate, a third fast at the share
Time host_adam_time(const Operation& op, const hardware::NodeType& node, int at_once);

/// Name of the curve that prices an attention kernel in this format: "cudnn", in 8 bits
/// "cudnn-fp8".
std::string attention_curve(std::string_view kernel, hardware::DType type);

/// Host time to launch an operation: it depends on the pass; a collective has jitter x ranks on
/// top.
Time launch_time(const Operation& op, const Software& software, int ranks);

/// Host time to launch one CUDA graph of this many operations.
Time graph_launch_time(std::size_t operations, const Software& software);

/// Prices a Program: transfers and collectives together with their siblings, or alone where the
/// caller evaluates links itself (LinkSharing). `assumptions` gets each fallback curve that was
/// used, and the launch time taken for CUDA graphs where the software states none. `counts`: those
/// of the Program where the caller has them; null: they are found from its lists.
/// Errors  a format that the GPU lacks: InputError (plans are checked before)
PricedProgram price_program(const Program& program, const hardware::Cluster& cluster,
                            const Software& software, std::vector<std::string>& assumptions,
                            const WirePlaces& places = {},
                            const std::vector<TargetCounts>* counts = nullptr);

}  // namespace orrery::models
