#include "models/evaluation/sweep_state.hpp"

#include <string>

namespace orrery::models {

ContractError SweepState::stuck() const {
  std::string text = "the schedule cannot proceed:";
  for (std::uint32_t c = 0; c < ranks.size(); ++c) {
    const Token at = ranks[c].at;
    const std::vector<Instruction>& list = program.classes[c].instructions;
    if (at >= list.size()) continue;
    text += " stage " + std::to_string(program.classes[c].stage) + " waits at i" +
            std::to_string(at) + " " + std::string{name(list[at].op)};
    if (list[at].op == Opcode::receive) {
      text += " from stage " + std::to_string(program.channels[list[at].target].from);
    }
    text += ";";
  }
  text.pop_back();
  return ContractError{text};
}

}  // namespace orrery::models
