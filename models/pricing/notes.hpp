#pragma once
// Assumptions that prices rest on where this GPU or cluster was not measured: fallback curves,
// taken from another GPU or format, and sizes outside the measured range.

#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "hardware/gpu/gpu.hpp"
#include "models/network/placement.hpp"
#include "models/pricing/wire.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Adds a text unless it is already there.
void note_once(const std::string& text, std::vector<std::string>& assumptions);

/// Notes each fallback curve that the Program uses, once; returns how many there are without a
/// spread of their own (CurveOrigin).
int note_fallbacks(const hardware::Gpu& gpu, const Program& program, const Software& software,
                   std::vector<std::string>& assumptions);

/// Notes the attention kernel where the plan leaves it to the stack.
void note_attention_kernel(const hardware::Gpu& gpu, const Program& program,
                           const Software& software, std::vector<std::string>& assumptions);

/// Notes GEMMs and sequence lengths outside the measured range of their curve, where its formula
/// extrapolates.
void note_shapes(const hardware::Gpu& gpu, const Program& program, const Software& software,
                 std::vector<std::string>& assumptions);

/// Notes the measured slowdown of compute and communication that run concurrently: that of kernels
/// is priced (beside_communication.hpp), that of communication is not.
void note_concurrent_slowdown(const hardware::Gpu& gpu, const Program& program,
                              std::vector<std::string>& assumptions);

/// Notes that a CPU stores fp8 and computes in fp32.
void note_stored_fp8(const hardware::Gpu& gpu, const Program& program,
                     std::vector<std::string>& assumptions);

/// Notes which of a cluster's measured collectives were scaled or used outside their sizes and,
/// once, which of them price nothing in this Program.
void note_tables(const Program& program, const hardware::Cluster& cluster,
                 std::vector<std::string>& assumptions, const AxisOrder& order = {});

/// Notes where an oversubscribed fabric changes no time of this Program, and why.
void note_oversubscription(const Program& program, const hardware::Cluster& cluster,
                           std::vector<std::string>& assumptions, const WirePlaces& places = {});

}  // namespace orrery::models
