#include "executor/run/send_depth.hpp"

#include <algorithm>
#include <map>
#include <vector>

#include "executor/layout/memory_plan.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Instruction;

/// Runs the instruction lists of all rank classes without timing: does every one reach its end?
class Rehearsal {
 public:
  Rehearsal(const models::Program& program, std::size_t depth)
      : program_{program}, posted_(program.channels.size(), 0), sent_(program.channels.size(), 0) {
    for (std::size_t c = 0; c < program.classes.size(); ++c) {
      plans_.emplace_back(program, static_cast<std::int64_t>(c), 0, depth);
      ranks_.emplace_back();
    }
  }

  bool ends() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t c = 0; c < ranks_.size(); ++c) {
        while (step(c)) moved = true;
      }
    }
    for (std::size_t c = 0; c < ranks_.size(); ++c) {
      if (ranks_[c].at < program_.classes[c].instructions.size()) return false;
    }
    return true;
  }

 private:
  struct SendRank {
    std::size_t at = 0, reuse = 0;
    std::map<std::uint32_t, std::size_t> numbers;   // of each send in its channel
    std::map<std::uint32_t, std::size_t> expected;  // receives posted so far, by channel
  };

  /// Has the receiver posted the receive that matches this class's send?
  bool taken(std::size_t c, std::uint32_t send) const {
    const std::uint32_t channel = program_.classes[c].instructions[send].target;
    return posted_[channel] > ranks_[c].numbers.at(send);
  }

  bool step(std::size_t c) {
    SendRank& rank = ranks_[c];
    const std::vector<Instruction>& list = program_.classes[c].instructions;
    if (rank.at == list.size()) return false;
    const std::vector<MemoryPlan::Reuse>& reuses = plans_[c].reuses();
    for (; rank.reuse < reuses.size() && reuses[rank.reuse].instruction == rank.at; ++rank.reuse) {
      if (!taken(c, reuses[rank.reuse].send)) return false;
    }
    const auto at = static_cast<models::Token>(rank.at);
    if (!visit(at, list[at], SendTurn{*this, rank})) return false;
    ++rank.at;
    return true;
  }

  /// Executes one instruction; each visit returns whether the rank can go on.
  struct SendTurn {
    Rehearsal& all;
    SendRank& rank;

    bool send(models::Token i, const Instruction& each) const {
      rank.numbers[i] = all.sent_[each.target]++;
      return true;
    }
    bool receive(models::Token, const Instruction& each) const {
      rank.expected[each.target] = ++all.posted_[each.target];
      return true;
    }
    bool compute(models::Token, const Instruction&) const {
      return std::all_of(rank.expected.begin(), rank.expected.end(), [&](const auto& posted) {
        return all.sent_[posted.first] >= posted.second;
      });
    }
    bool phase(models::Token, const Instruction&) const { return true; }
    bool joint(models::Token, const Instruction&) const { return true; }
  };

  const models::Program& program_;
  std::vector<MemoryPlan> plans_;
  std::vector<SendRank> ranks_;
  std::vector<std::size_t> posted_, sent_;  // by channel
};

}  // namespace

std::size_t send_depth(const models::Program& program) {
  if (program.classes.size() == 1) return 0;
  // With as many as there are micro-batches times chunks, no memory is bound again.
  const auto most =
      2 * static_cast<std::size_t>(program.step.micro_batches) * program.classes[0].chunks.size();
  for (std::size_t depth = 0; depth <= most; depth = depth == 0 ? 1 : 2 * depth) {
    if (Rehearsal{program, depth}.ends()) return depth;
  }
  throw ContractError{"deadlock: ranks of this program wait for each other"};
}

}  // namespace orrery::executor
