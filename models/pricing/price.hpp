#pragma once
// Puts a time on everything in a Program: kernels by the GPU's curves and the stack's derates,
// collectives by their cost models next to their siblings, launches by the stack's host costs.

#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "models/evaluation/priced.hpp"
#include "models/pricing/wire.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Time of one kernel in a long step of this stack on this GPU: as measured there, else by its
/// curves.
/// at_once  ranks of its machine that compute at the same time, where they slow each other down
Time kernel_time(const Operation& op, const hardware::Gpu& gpu, const Software& software,
                 int at_once = 1);

/// The curve that prices an attention of this format: "cudnn", in 8 bits "cudnn-fp8".
std::string attention_kernel(const Software& software, std::string_view generation,
                             hardware::DType type);

/// Host time before an operation starts: by pass, and for a collective jitter x ranks on top.
Time launch_time(const Operation& op, const Software& software, int ranks);

/// Host time of one CUDA graph of so many operations.
Time graph_launch_time(std::size_t operations, const Software& software);

/// Prices a Program; each transfer next to its siblings, or alone for those who evaluate its links
/// themselves. `assumptions` names each borrowed curve that was used, and
/// what a launch of a CUDA graph was taken for where the software does not say.
/// Errors  a format that the GPU lacks: InputError (plans are checked before)
PricedProgram price_program(const Program& program, const hardware::Cluster& cluster,
                            const Software& software, std::vector<std::string>& assumptions,
                            const WirePlaces& places = {});

}  // namespace orrery::models
