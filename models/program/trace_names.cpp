#include "models/program/trace_names.hpp"

#include <fmt/format.h>

#include "models/program/opcodes.hpp"

namespace orrery::models {

std::string trace_process(std::int64_t rank, std::int64_t stage) {
  return fmt::format("rank {} (stage {})", rank, stage);
}

std::string_view trace_track(const Program& program, const Instruction& instruction) {
  if (is_joint(instruction)) return "comm:dp";
  if (runs_phase(instruction)) return "compute";
  return program.channels[instruction.target].forward ? "comm:pp" : "comm:pp back";
}

std::string trace_title(const Program& program, const Instruction& instruction) {
  const Opcode op = instruction.op;
  if (is_joint(instruction)) return program.collectives[instruction.target].name;
  if (op == Opcode::optimizer || op == Opcode::compress) return std::string{name(op)};
  return fmt::format("{} chunk {} mb {}", name(op), instruction.chunk, instruction.micro_batch);
}

Bytes trace_bytes(const Program& program, const Instruction& instruction) {
  if (is_joint(instruction)) return program.collectives[instruction.target].bytes;
  return instruction.op == Opcode::send ? program.channels[instruction.target].bytes : Bytes{};
}

std::string trace_id(std::int64_t rank, std::size_t instruction) {
  return fmt::format("{}/{}", rank, instruction);
}

std::string trace_id(std::int64_t rank, std::size_t instruction, const Block& block,
                     std::int64_t layer, const Operation& operation) {
  const std::string of_layer = layer < 0 ? std::string{} : fmt::format(".{}", layer);
  return fmt::format("{}/{}/{}{}/{}", rank, instruction, block.name, of_layer, operation.name);
}

}  // namespace orrery::models
