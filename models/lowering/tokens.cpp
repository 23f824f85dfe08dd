#include <utility>

#include "models/lowering/lower.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

/// Follows one class's list. The passes put a receive right before the run that it feeds, a send
/// right after the run whose output it takes, and a joint collective after what it needs.
class TokenNamer {
 public:
  explicit TokenNamer(std::vector<Token>& reached) : reached_{reached} {}

  void compute(Token i, Instruction& each) {
    each.input = std::exchange(received_, no_token);
    sent_ = i;
    ran(i, each);
  }
  /// Needs no token for what it reads: backward has made it on the same lane.
  void weight_gradient(Token i, Instruction& each) { ran(i, each); }
  void optimizer(Token i, Instruction& each) {
    each.input = std::exchange(joined_, no_token);
    ran(i, each);
  }
  void phase(Token i, Instruction& each) { ran(i, each); }
  void send(Token, Instruction& each) { each.input = sent_; }
  void receive(Token i, Instruction&) { received_ = i; }
  void joint(Token i, Instruction& each) {
    each.input = ran_;
    joined_ = reached_[each.target] = i;
  }

 private:
  void ran(Token i, Instruction& each) {
    if (each.awaits != no_token) each.awaits = reached_[each.awaits];
    ran_ = i;
  }

  std::vector<Token>& reached_;  // where in the list, by joint collective
  Token received_ = no_token, sent_ = no_token, ran_ = no_token, joined_ = no_token;
};

}  // namespace

Program name_tokens(Program program) {
  std::vector<Token> reached(program.collectives.size(), no_token);
  for (RankClass& ranks : program.classes) {
    TokenNamer namer{reached};
    for (Token i = 0; i < ranks.instructions.size(); ++i) {
      visit(i, ranks.instructions[i], namer);
    }
  }
  return program;
}

}  // namespace orrery::models
