#include <fmt/format.h>

#include <algorithm>

#include "models/program/check/check.hpp"
#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Executes all lists without time, as far as they get. Sends never block.
class MatchingCheck {
 public:
  explicit MatchingCheck(const Program& program)
      : program_{program},
        at_(program.classes.size(), 0),
        channels_(program.channels.size()),
        arrived_(program.collectives.size()) {
    for (std::size_t id = 0; id < channels_.size(); ++id) {
      const std::uint32_t from = program.channels[id].from;
      channels_[id].sends.reserve(program.classes[from].instructions.size() / usual_share);
    }
    for (const Chunk& chunk : program.chunks) {
      const bool keeps = program.keeps_output_gradient(chunk);
      gradient_slots_.push_back(keeps ? slot_delayed : slot_in);
    }
  }

  void run() {
    for (auto c = static_cast<std::uint32_t>(at_.size()); c-- > 0;) runnable_.push_back(c);
    while (!runnable_.empty()) {
      const std::uint32_t c = runnable_.back();
      runnable_.pop_back();
      advance(c);
    }
    for (std::uint32_t c = 0; c < at_.size(); ++c) {
      if (stuck(c)) missing(c);
    }
    for (std::uint32_t c = 0; c < at_.size(); ++c) {
      if (stuck(c)) throw ContractError{"deadlock: " + cycle(c)};
    }
    for (std::uint32_t id = 0; id < channels_.size(); ++id) all_received(id);
    for (std::uint32_t id = 0; id < arrived_.size(); ++id) all_arrived(id);
  }

 private:
  struct SentTransfer {
    Token at;
    std::uint32_t micro_batch;
    std::uint16_t chunk;
  };
  struct ChannelUse {
    std::vector<SentTransfer> sends;  // in order
    std::size_t received = 0;
    bool waiting = false;  // the receiver is stuck here
    /// The chunks of the last send and receive whose buffers were checked; -1: none.
    int checked_send = -1, checked_receive = -1;
  };
  /// About one in this many of a stage's instructions is a send on any one of its channels.
  static constexpr std::size_t usual_share = 5;

  void advance(std::uint32_t c) {
    const std::vector<Instruction>& list = program_.classes[c].instructions;
    Token at = at_[c];
    while (at < list.size() && visit(at, list[at], MatchingTurn{*this, c})) ++at;
    at_[c] = at;
  }

  /// Visits one instruction; returns whether the class can go on to the next.
  struct MatchingTurn {
    MatchingCheck& all;
    std::uint32_t rank_class;

    bool phase(Token, const Instruction&) const { return true; }
    bool send(Token i, const Instruction& each) const { return all.send(rank_class, i, each); }
    bool receive(Token i, const Instruction& each) const {
      return all.receive(rank_class, i, each);
    }
    bool joint(Token i, const Instruction& each) const { return all.join(rank_class, i, each); }
  };

  bool stuck(std::uint32_t c) const { return at_[c] < program_.classes[c].instructions.size(); }
  std::int64_t stage(std::uint32_t c) const { return program_.classes[c].stage; }
  [[noreturn]] void refuse(std::uint32_t c, Token i, const std::string& problem) const {
    throw ContractError{fmt::format("{}: {}", place(program_, c, i), problem)};
  }

  bool send(std::uint32_t c, Token i, const Instruction& each) {
    ChannelUse& use = channels_[each.target];
    check_endpoint(c, i, each, slot_out, use.checked_send);
    use.sends.push_back({i, each.micro_batch, each.chunk});
    if (use.waiting) runnable_.push_back(program_.channels[each.target].to);
    use.waiting = false;
    return true;
  }

  bool receive(std::uint32_t c, Token i, const Instruction& each) {
    ChannelUse& use = channels_[each.target];
    const Channel& channel = program_.channels[each.target];
    const Slot slot = channel.forward ? slot_saved : gradient_slots_[each.chunk];
    check_endpoint(c, i, each, slot, use.checked_receive);
    use.waiting = use.received == use.sends.size();
    if (use.waiting) return false;
    const SentTransfer& sent = use.sends[use.received];
    const int expected = channel.forward ? sent.chunk + 1 : sent.chunk - 1;
    if (each.micro_batch != sent.micro_batch || each.chunk != expected) {
      refuse(c, i,
             fmt::format("receives transfer {} of its channel, which is sent by {}", use.received,
                         place(program_, channel.from, sent.at)));
    }
    ++use.received;
    return true;
  }

  /// The channel begins or ends at this class, and the buffer at this end has the size of a
  /// transfer, which is the same for all micro-batches unless they differ in what they recompute.
  /// Saved and delayed buffers are exempt: they hold more than what arrives.
  void check_endpoint(std::uint32_t c, Token i, const Instruction& each, Slot slot,
                      int& checked) const {
    const Channel& channel = program_.channels[each.target];
    const bool sends = slot == slot_out;
    if ((sends ? channel.from : channel.to) != c) {
      refuse(c, i,
             fmt::format("its channel is from stage {} to stage {}", stage(channel.from),
                         stage(channel.to)));
    }
    if (slot == slot_saved || slot == slot_delayed || checked == each.chunk) return;
    const RankClass& ranks = program_.classes[c];
    const BufferType& buffer = ranks.types[buffer_type(program_, ranks, each, slot)];
    if (ranks.recomputes.empty()) checked = each.chunk;
    if (buffer.bytes == channel.bytes) return;
    refuse(c, i,
           fmt::format("{} holds {} bytes, its channel {} stage {} carries {}", buffer.name,
                       buffer.bytes.count(), sends ? "to" : "from",
                       stage(sends ? channel.to : channel.from), channel.bytes.count()));
  }

  bool join(std::uint32_t c, Token i, const Instruction& each) {
    std::vector<std::uint32_t>& here = arrived_[each.target];
    const std::vector<std::uint32_t>& members = program_.collectives[each.target].classes;
    const bool came = std::ranges::find(here, c) != here.end();
    if (!came && std::ranges::count(members, c) != 1) {
      refuse(c, i, "is not one of its members");
    }
    if (came && !resumes(c, i)) refuse(c, i, "is called a second time");
    if (came) return here.size() == members.size();
    here.push_back(c);
    if (here.size() < members.size()) {
      waits_.resize(at_.size(), no_token);
      waits_[c] = i;
      return false;
    }
    for (const std::uint32_t other : here) {
      if (other != c) runnable_.push_back(other);
    }
    return true;
  }
  /// Is it the instruction at which the class has waited for the other members?
  bool resumes(std::uint32_t c, Token i) const { return c < waits_.size() && waits_[c] == i; }

  // --- what went wrong ------------------------------------------------------------------------

  std::size_t count_sends(std::uint32_t c, std::uint32_t channel) const {
    std::size_t count = 0;
    walk(program_, c,
         Cases{pass_over, [&](Token, const Instruction& each) { count += each.target == channel; },
               pass_over, pass_over});
    return count;
  }
  bool reaches(std::uint32_t c, std::uint32_t joint) const {
    bool found = false;
    walk(program_, c, Cases{pass_over, pass_over, pass_over, [&](Token, const Instruction& each) {
                              found = found || each.target == joint;
                            }});
    return found;
  }

  /// Refuses a stuck class whose peer instruction is in no list.
  void missing(std::uint32_t c) const {
    const Instruction& each = program_.classes[c].instructions[at_[c]];
    if (is_joint(each)) return all_reach(each.target);
    const Channel& channel = program_.channels[each.target];
    const std::size_t sends = count_sends(channel.from, each.target);
    if (sends > channels_[each.target].received) return;
    refuse(c, at_[c], fmt::format("stage {} sends only {} transfers", stage(channel.from), sends));
  }

  void all_reach(std::uint32_t id) const {
    for (const std::uint32_t member : program_.collectives[id].classes) {
      if (member < at_.size() && reaches(member, id)) continue;
      throw ContractError{fmt::format("collective '{}': stage {} never calls it",
                                      program_.collectives[id].name,
                                      program_.classes.at(member).stage)};
    }
  }
  void all_arrived(std::uint32_t id) const {
    if (arrived_[id].size() < program_.collectives[id].classes.size()) all_reach(id);
  }
  void all_received(std::uint32_t id) const {
    const ChannelUse& use = channels_[id];
    if (use.sends.size() == use.received) return;
    const Channel& channel = program_.channels[id];
    refuse(channel.from, use.sends[use.received].at,
           fmt::format("stage {} receives only {} transfers", stage(channel.to), use.received));
  }

  /// The class that a stuck one waits for: the sender, or the first member that has not arrived.
  std::uint32_t awaited(std::uint32_t c) const {
    const Instruction& each = program_.classes[c].instructions[at_[c]];
    if (!is_joint(each)) return program_.channels[each.target].from;
    const std::vector<std::uint32_t>& here = arrived_[each.target];
    for (const std::uint32_t other : program_.collectives[each.target].classes) {
      if (std::ranges::find(here, other) == here.end()) return other;
    }
    return c;
  }

  std::string cycle(std::uint32_t c) const {
    std::vector<std::uint32_t> path;
    auto begin = path.end();
    while (begin == path.end()) {
      path.push_back(c);
      c = awaited(c);
      begin = std::ranges::find(path, c);
    }
    std::string text;
    for (auto each = begin; each != path.end(); ++each) {
      const auto next = each + 1 == path.end() ? begin : each + 1;
      text += fmt::format("{}{} waits for stage {}", text.empty() ? "" : "; ",
                          place(program_, *each, at_[*each]), stage(*next));
    }
    return text;
  }

  const Program& program_;
  std::vector<Token> at_;  // by class
  std::vector<ChannelUse> channels_;
  std::vector<Slot> gradient_slots_;  // by chunk: where its output's gradient arrives
  std::vector<std::vector<std::uint32_t>> arrived_;  // by collective
  std::vector<Token> waits_;                         // by class: at which joint collective
  std::vector<std::uint32_t> runnable_;
};

}  // namespace

void check_matching(const Program& program) {
  MatchingCheck{program}.run();
}

}  // namespace orrery::models
