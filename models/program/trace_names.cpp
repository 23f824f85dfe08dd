#include "models/program/trace_names.hpp"

#include <fmt/format.h>

#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

struct Track {
  const Program& program;

  std::string_view phase(Token, const Instruction&) const { return "compute"; }
  std::string_view send(Token, const Instruction& each) const {
    return program.channels[each.target].forward ? "comm:pp" : "comm:pp back";
  }
  std::string_view receive(Token i, const Instruction& each) const { return send(i, each); }
  std::string_view joint(Token, const Instruction&) const { return "comm:dp"; }
};

struct Title {
  const Program& program;

  std::string phase(Token, const Instruction& each) const { return std::string{name(each.op)}; }
  std::string compute(Token, const Instruction& each) const {
    return fmt::format("{} chunk {} mb {}", name(each.op), each.chunk, each.micro_batch);
  }
  std::string send(Token i, const Instruction& each) const { return compute(i, each); }
  std::string receive(Token i, const Instruction& each) const { return compute(i, each); }
  std::string joint(Token, const Instruction& each) const {
    return program.collectives[each.target].name;
  }
};

struct Payload {
  const Program& program;

  Bytes phase(Token, const Instruction&) const { return {}; }
  Bytes send(Token, const Instruction& each) const { return program.channels[each.target].bytes; }
  Bytes receive(Token, const Instruction&) const { return {}; }
  Bytes joint(Token, const Instruction& each) const {
    return program.collectives[each.target].bytes;
  }
};

}  // namespace

std::string trace_process(std::int64_t rank, std::int64_t stage) {
  return fmt::format("rank {} (stage {})", rank, stage);
}

std::string_view trace_track(const Program& program, const Instruction& instruction) {
  return visit(0, instruction, Track{program});
}

std::string trace_title(const Program& program, const Instruction& instruction) {
  return visit(0, instruction, Title{program});
}

Bytes trace_bytes(const Program& program, const Instruction& instruction) {
  return visit(0, instruction, Payload{program});
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
