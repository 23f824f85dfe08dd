#pragma once
// How a trace names what ran: tracks, titles and ids, by which a predicted and a measured record of
// the same instruction or operation are joined.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/program/program.hpp"

namespace orrery::models {

/// The tracks of one rank, in the order of a report. Activations and gradients travel at the same
/// time, so they are two.
inline constexpr std::array<std::string_view, 8> trace_tracks{
    "host", "compute", "comm:tp", "comm:cp", "comm:dp", "comm:pp", "comm:pp back", "copy"};

/// "rank 3 (stage 1)"
std::string trace_process(std::int64_t rank, std::int64_t stage);
/// Of a whole instruction.
std::string_view trace_track(const Program& program, const Instruction& instruction);
/// "forward chunk 1 mb 2", or a joint collective's name.
std::string trace_title(const Program& program, const Instruction& instruction);
/// What the ledger charges to this rank: a transfer counts where it is sent.
Bytes trace_bytes(const Program& program, const Instruction& instruction);

/// "3/17": rank and index in its list.
std::string trace_id(std::int64_t rank, std::size_t instruction);
/// "3/17/layer.forward.0/qkv"; a block that belongs to no layer has `layer` -1.
std::string trace_id(std::int64_t rank, std::size_t instruction, const Block& block,
                     std::int64_t layer, const Operation& operation);

}  // namespace orrery::models
