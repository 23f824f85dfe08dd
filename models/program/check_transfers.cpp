#include <fmt/format.h>

#include <algorithm>

#include "models/program/check.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Places in the lists of the two ends of one channel.
struct ChannelUse {
  std::vector<std::uint32_t> sends, receives;
};

class TransferCheck {
 public:
  explicit TransferCheck(const Program& program)
      : program_{program}, uses_(program.channels.size()) {}

  void run() {
    collect();
    for (std::uint32_t id = 0; id < uses_.size(); ++id) meet(program_.channels[id], uses_[id]);
  }

 private:
  void collect() {
    const auto most =
        static_cast<std::size_t>(program_.plan.micro_batches() * program_.plan.virtual_stages);
    for (ChannelUse& each : uses_) {
      each.sends.reserve(most);
      each.receives.reserve(most);
    }
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) {
      const std::vector<Instruction>& list = program_.classes[c].instructions;
      for (std::uint32_t i = 0; i < list.size(); ++i) {
        const Instruction& each = list[i];
        if (each.op != Opcode::send && each.op != Opcode::receive) continue;
        const Channel& channel = program_.channels[each.target];
        const bool sends = each.op == Opcode::send;
        if ((sends ? channel.from : channel.to) != c) {
          refuse(c, i,
                 fmt::format("its channel leads from stage {} to stage {}", stage(channel.from),
                             stage(channel.to)));
        }
        carries(c, i, channel);
        (sends ? uses_[each.target].sends : uses_[each.target].receives).push_back(i);
      }
    }
  }

  std::int64_t stage(std::uint32_t c) const { return program_.classes[c].stage; }

  [[noreturn]] void refuse(std::uint32_t c, std::size_t i, std::string problem) const {
    throw ContractError{fmt::format("{}: {}", place(program_, c, i), problem)};
  }

  /// The buffer at either end holds what the channel carries; activations arrive inside the saved
  /// buffer, which holds more.
  void carries(std::uint32_t c, std::uint32_t i, const Channel& channel) const {
    const RankClass& ranks = program_.classes[c];
    const Instruction& each = ranks.instructions[i];
    const auto stages = static_cast<std::uint32_t>(program_.plan.pipeline);
    const ChunkBuffers& types = ranks.chunk_buffers[each.chunk / stages];
    const bool sends = each.op == Opcode::send;
    if (!sends && channel.forward) return;
    const std::uint16_t type = !sends            ? types.gradient_in
                               : channel.forward ? types.out
                                                 : types.gradient_out;
    const BufferType& buffer = ranks.types[type];
    if (buffer.bytes == channel.bytes) return;
    refuse(c, i,
           fmt::format("{} holds {} bytes, its channel {} stage {} carries {}", buffer.name,
                       buffer.bytes.count(), sends ? "to" : "from",
                       stage(sends ? channel.to : channel.from), channel.bytes.count()));
  }

  void meet(const Channel& channel, const ChannelUse& use) const {
    const std::size_t both = std::min(use.sends.size(), use.receives.size());
    for (std::size_t k = 0; k < both; ++k) {
      const Instruction& sent = program_.classes[channel.from].instructions[use.sends[k]];
      const Instruction& got = program_.classes[channel.to].instructions[use.receives[k]];
      const int expected = channel.forward ? sent.chunk + 1 : sent.chunk - 1;
      if (got.micro_batch == sent.micro_batch && got.chunk == expected) continue;
      refuse(channel.to, use.receives[k],
             fmt::format("meets transfer {} of its channel, {}", k,
                         place(program_, channel.from, use.sends[k])));
    }
    if (use.receives.size() > both) {
      refuse(channel.to, use.receives[both],
             fmt::format("stage {} sends only {} transfers", stage(channel.from), both));
    }
    if (use.sends.size() > both) {
      refuse(channel.from, use.sends[both],
             fmt::format("stage {} receives only {} transfers", stage(channel.to), both));
    }
  }

  const Program& program_;
  std::vector<ChannelUse> uses_;
};

/// Runs every list with sends that never wait, as far as it goes.
class ProgressCheck {
 public:
  explicit ProgressCheck(const Program& program)
      : program_{program},
        at_(program.classes.size(), 0),
        sent_(program.channels.size(), 0),
        received_(program.channels.size(), 0),
        waiting_(program.channels.size(), false),
        arrived_(program.collectives.size()) {}

  void run() {
    for (auto c = static_cast<std::uint32_t>(at_.size()); c-- > 0;) runnable_.push_back(c);
    while (!runnable_.empty()) {
      const std::uint32_t c = runnable_.back();
      runnable_.pop_back();
      const std::vector<Instruction>& list = program_.classes[c].instructions;
      while (at_[c] < list.size() && passes(c, list[at_[c]])) ++at_[c];
    }
    for (std::uint32_t c = 0; c < at_.size(); ++c) {
      if (stuck(c)) throw ContractError{"nobody in this circle can go on: " + circle(c)};
    }
  }

 private:
  bool stuck(std::uint32_t c) const { return at_[c] < program_.classes[c].instructions.size(); }

  bool passes(std::uint32_t c, const Instruction& each) {
    switch (each.op) {
      case Opcode::send:
        ++sent_[each.target];
        if (waiting_[each.target]) {
          waiting_[each.target] = false;
          runnable_.push_back(program_.channels[each.target].to);
        }
        return true;
      case Opcode::receive:
        waiting_[each.target] = received_[each.target] == sent_[each.target];
        if (waiting_[each.target]) return false;
        ++received_[each.target];
        return true;
      case Opcode::forward:
      case Opcode::backward:
      case Opcode::optimizer:
      case Opcode::compress:
        return true;
      default:
        return joins(c, each.target);
    }
  }

  bool joins(std::uint32_t c, std::uint32_t id) {
    std::vector<std::uint32_t>& here = arrived_[id];
    const std::vector<std::uint32_t>& members = program_.collectives[id].classes;
    if (here.size() == members.size()) return true;
    here.push_back(c);
    if (here.size() < members.size()) return false;
    for (const std::uint32_t other : here) {
      if (other != c) runnable_.push_back(other);
    }
    return true;
  }

  /// The class that a stuck one waits for: the sender, or the first member that is not there.
  std::uint32_t awaited(std::uint32_t c) const {
    const Instruction& each = program_.classes[c].instructions[at_[c]];
    if (each.op == Opcode::receive) return program_.channels[each.target].from;
    const std::vector<std::uint32_t>& here = arrived_[each.target];
    for (const std::uint32_t other : program_.collectives[each.target].classes) {
      if (std::find(here.begin(), here.end(), other) == here.end()) return other;
    }
    return c;
  }

  std::string circle(std::uint32_t c) const {
    std::vector<std::uint32_t> path;
    auto begin = path.end();
    while (begin == path.end()) {
      path.push_back(c);
      c = awaited(c);
      begin = std::find(path.begin(), path.end(), c);
    }
    std::string text;
    for (auto each = begin; each != path.end(); ++each) {
      const auto next = each + 1 == path.end() ? begin : each + 1;
      text += fmt::format("{}{} waits for stage {}", text.empty() ? "" : "; ",
                          place(program_, *each, at_[*each]), program_.classes[*next].stage);
    }
    return text;
  }

  const Program& program_;
  std::vector<std::size_t> at_;               // by class
  std::vector<std::size_t> sent_, received_;  // by channel
  std::vector<bool> waiting_;
  std::vector<std::vector<std::uint32_t>> arrived_;  // by collective
  std::vector<std::uint32_t> runnable_;
};

}  // namespace

void check_transfers(const Program& program) {
  TransferCheck{program}.run();
}

void check_progress(const Program& program) {
  ProgressCheck{program}.run();
}

}  // namespace orrery::models
