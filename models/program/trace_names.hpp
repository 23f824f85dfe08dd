#pragma once
// Names in a trace: tracks, titles, and the ids by which the predicted and the measured record of
// one instruction or operation are joined.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "models/program/program.hpp"

namespace orrery::models {

/// The tracks of one rank, in the order of a report. Transfers of activations and of gradients run
/// concurrently, so they have a track each.
inline constexpr std::array<std::string_view, 8> trace_tracks{
    "host", "compute", "comm:tp", "comm:cp", "comm:dp", "comm:pp", "comm:pp back", "copy"};

/// "rank 3 (stage 1)"
std::string trace_process(std::int64_t rank, std::int64_t stage);
/// The track of a whole instruction.
std::string_view trace_track(const Program& program, const Instruction& instruction);
/// "forward chunk 1 mb 2", or a joint collective's name.
std::string trace_title(const Program& program, const Instruction& instruction);
/// Bytes that the ledger counts for this rank: a transfer counts at its sender.
Bytes trace_bytes(const Program& program, const Instruction& instruction);

/// "3/17": rank and index in its list.
std::string trace_id(std::int64_t rank, std::size_t instruction);
/// "3/17/layer.forward.0/qkv"; a block that belongs to no layer has `layer` -1.
std::string trace_id(std::int64_t rank, std::size_t instruction, const Block& block,
                     std::int64_t layer, const Operation& operation);

}  // namespace orrery::models
