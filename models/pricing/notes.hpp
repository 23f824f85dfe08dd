#pragma once
// What a price rests on besides measurements of its own: curves borrowed from another GPU or
// format, and shapes that no measurement reached.

#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "hardware/gpu.hpp"
#include "models/network/placement.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

/// Names each borrowed curve that the Program uses, once; answers how many there are.
int note_borrowed(const hardware::Gpu& gpu, const Program& program, const Software& software,
                  std::vector<std::string>& assumptions);

/// Products and sequences that no row of their curve reaches: the formula goes on, and this says
/// so.
void note_shapes(const hardware::Gpu& gpu, const Program& program, const Software& software,
                 std::vector<std::string>& assumptions);

/// What compute and communication were measured to lose concurrently with each other, where a
/// Program of several ranks is priced without it.
void note_beside(const hardware::Gpu& gpu, const Program& program,
                 std::vector<std::string>& assumptions);

/// A processor stores fp8 and computes in fp32.
void note_stored_fp8(const hardware::Gpu& gpu, const Program& program,
                     std::vector<std::string>& assumptions);

/// Of a cluster's measured collectives: those that were scaled or left by a size, and, once, those
/// that price nothing of this Program.
void note_tables(const Program& program, const hardware::Cluster& cluster,
                 std::vector<std::string>& assumptions, const AxisOrder& order = {});

/// An oversubscribed fabric that changes no time of this Program, with the reason.
void note_oversubscription(const Program& program, const hardware::Cluster& cluster,
                           std::vector<std::string>& assumptions, const AxisOrder& order = {});

}  // namespace orrery::models
