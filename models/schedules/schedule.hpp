#pragma once
// A pipeline schedule says in which order one stage computes: forward and backward slots only.
// Transfers, reductions and buffers are added by the lowering, so a schedule cannot deadlock.

#include <cstdint>
#include <vector>

#include "models/program/program.hpp"
#include "models/schedules/registry.hpp"

namespace orrery::models {

struct PipelineShape {
  std::int64_t stages = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
};

/// Appends the slots of one stage; each (chunk, micro-batch) runs forward once, backward once.
using Schedule = void (*)(const PipelineShape& shape, std::int64_t stage,
                          std::vector<Instruction>& slots);

void naive(const PipelineShape&, std::int64_t stage, std::vector<Instruction>& slots);
void gpipe(const PipelineShape&, std::int64_t stage, std::vector<Instruction>& slots);
void one_f_one_b(const PipelineShape&, std::int64_t stage, std::vector<Instruction>& slots);
void interleaved(const PipelineShape&, std::int64_t stage, std::vector<Instruction>& slots);

/// All of them, in the open: models/schedules/builtins.cpp.
Registry<Schedule> builtin_schedules();

/// One compute slot: chunk of `stage`'s virtual stage v.
inline Instruction compute_slot(Opcode op, const PipelineShape& shape, std::int64_t stage,
                                std::int64_t v, std::int64_t micro_batch) {
  Instruction slot;
  slot.op = op;
  slot.chunk = static_cast<std::uint16_t>(v * shape.stages + stage);
  slot.micro_batch = static_cast<std::uint32_t>(micro_batch);
  return slot;
}

}  // namespace orrery::models
