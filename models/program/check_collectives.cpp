#include <fmt/format.h>

#include <algorithm>

#include "models/lowering/lower.hpp"
#include "models/program/check.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Where a class reaches a joint collective.
struct Reached {
  std::uint32_t rank_class = 0;
  std::size_t at = 0;
};

class CollectiveCheck {
 public:
  explicit CollectiveCheck(const Program& program)
      : program_{program}, reached_(program.collectives.size()) {}

  void run() {
    for (const JointCollective& each : program_.collectives) {
      if (each.communicator < program_.communicators.size()) continue;
      throw ContractError{fmt::format("collective '{}' has no communicator", each.name)};
    }
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) visit(c);
    for (std::uint32_t id = 0; id < reached_.size(); ++id) complete(id);
    for (std::uint32_t id = 0; id < reached_.size(); ++id) ordered(id);
  }

 private:
  void visit(std::uint32_t c) {
    const std::vector<Instruction>& list = program_.classes[c].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!is_joint(list[i].op)) continue;
      const std::vector<std::uint32_t>& members = program_.collectives[list[i].target].classes;
      const auto refuse = [&](const char* problem) {
        throw ContractError{fmt::format("{}: {}", place(program_, c, i), problem)};
      };
      if (std::count(members.begin(), members.end(), c) != 1) refuse("is not one of its members");
      std::vector<Reached>& all = reached_[list[i].target];
      const bool again = std::any_of(all.begin(), all.end(),
                                     [&](const Reached& each) { return each.rank_class == c; });
      if (again) refuse("is reached a second time");
      all.push_back({c, i});
    }
  }

  void complete(std::uint32_t id) const {
    const JointCollective& joint = program_.collectives[id];
    for (const std::uint32_t member : joint.classes) {
      if (find(id, member) != nullptr) continue;
      throw ContractError{fmt::format("collective '{}': stage {} never reaches it", joint.name,
                                      program_.classes.at(member).stage)};
    }
  }

  const Reached* find(std::uint32_t id, std::uint32_t c) const {
    for (const Reached& each : reached_[id]) {
      if (each.rank_class == c) return &each;
    }
    return nullptr;
  }

  /// Members that share two collectives of one communicator meet them in one order.
  void ordered(std::uint32_t id) const {
    if (reached_[id].size() < 2) return;
    for (std::uint32_t other = 0; other < id; ++other) {
      if (program_.collectives[other].communicator == program_.collectives[id].communicator) {
        same_order(other, id);
      }
    }
  }

  void same_order(std::uint32_t a, std::uint32_t b) const {
    const Reached* first = nullptr;
    bool ahead = false;
    for (const Reached& mine : reached_[b]) {
      const Reached* theirs = find(a, mine.rank_class);
      if (theirs == nullptr) continue;
      const bool now = theirs->at < mine.at;
      if (first != nullptr && now != ahead) {
        throw ContractError{fmt::format("{}: meets '{}' {} it, {} does not",
                                        place(program_, mine.rank_class, mine.at),
                                        program_.collectives[a].name, now ? "before" : "behind",
                                        place(program_, first->rank_class, first->at))};
      }
      first = &mine;
      ahead = now;
    }
  }

  const Program& program_;
  std::vector<std::vector<Reached>> reached_;  // by collective, in order of classes
};

/// Layers in model order, half open.
struct LayerRange {
  std::int64_t first = 0, end = 0;
};

LayerRange layers_of(const Phase& phase, std::uint32_t block) {
  for (const Invocation& run : phase.invocations) {
    if (run.block != block) continue;
    if (block == layer_forward) return {run.first_layer, run.first_layer + run.count};
    return {run.first_layer - run.count + 1, run.first_layer + 1};
  }
  return {};
}

/// Gradient reductions of one class.
class ReductionCheck {
 public:
  ReductionCheck(const Program& program, std::uint32_t c)
      : program_{program}, ranks_{program.classes[c]}, class_{c} {}

  void run() {
    for (std::size_t i = 0; i < ranks_.instructions.size(); ++i) {
      if (ranks_.instructions[i].op == Opcode::reduce_gradient) reduce(i);
    }
    if (program_.plan.data == 1) return;
    const bool every = program_.plan.zero == Zero::two || program_.plan.zero == Zero::three;
    rounds_ = every ? program_.plan.micro_batches() : 1;
    for (std::int64_t round = 0; round < rounds_; ++round) complete(round);
    all_bytes();
    for (const std::size_t each : reductions_) final(each);
  }

 private:
  const JointCollective& joint(std::size_t i) const {
    return program_.collectives[ranks_.instructions[i].target];
  }
  [[noreturn]] void refuse(std::size_t i, const std::string& problem) const {
    throw ContractError{fmt::format("{}: {}", place(program_, class_, i), problem)};
  }

  void reduce(std::size_t i) {
    if (program_.plan.data == 1) refuse(i, "there is one replica");
    const Communicator& group = program_.communicators[joint(i).communicator];
    if (group.role != CommunicatorRole::data) {
      refuse(i, fmt::format("communicator {} is not the replicas'", group.name));
    }
    reductions_.push_back(i);
    bits_ += joint(i).bytes.count() * 8;
    due_bits_ = ranks_.parameters * hardware::bits(joint(i).dtype);
  }

  /// Each layer of the stage in one bucket, and every byte of the gradients in some bucket: in each
  /// micro-batch, where they are reduced that often.
  void complete(std::int64_t round) const {
    const std::int64_t stages = program_.plan.pipeline;
    for (std::int64_t chunk = ranks_.stage; chunk < program_.plan.chunks(); chunk += stages) {
      const LayerRange own = layers_of(program_.phases[forward_phase(chunk)], layer_forward);
      std::vector<int> times(static_cast<std::size_t>(own.end - own.first), 0);
      for (const std::size_t i : reductions_) {
        const Instruction& each = ranks_.instructions[i];
        if (each.chunk == chunk && (rounds_ == 1 || each.micro_batch == round)) {
          count(i, own, times);
        }
      }
      const auto missed = std::find(times.begin(), times.end(), 0);
      if (missed == times.end()) continue;
      throw ContractError{fmt::format("stage {}: gradients of layer {} are never reduced",
                                      ranks_.stage, own.first + (missed - times.begin()))};
    }
  }

  void all_bytes() const {
    if (program_.plan.compression != Compression::none) return all_elements();
    if (bits_ == due_bits_ * rounds_) return;
    throw ContractError{
        fmt::format("stage {}: {} bytes of gradients are reduced, its {} parameters "
                    "have {}",
                    ranks_.stage, bits_ / 8, ranks_.parameters, due_bits_ * rounds_ / 8)};
  }

  void all_elements() const {
    std::int64_t sum = 0;
    for (const std::size_t i : reductions_) sum += joint(i).elements;
    if (sum == ranks_.parameters) return;
    throw ContractError{fmt::format("stage {}: {} gradients are reduced, it has {} parameters",
                                    ranks_.stage, sum, ranks_.parameters)};
  }

  void count(std::size_t i, const LayerRange& own, std::vector<int>& times) const {
    const JointCollective& bucket = joint(i);
    for (std::int64_t layer = bucket.first_layer; layer < bucket.first_layer + bucket.layers;
         ++layer) {
      if (layer < own.first || layer >= own.end) {
        refuse(i, fmt::format("layer {} is not in c{}", layer, ranks_.instructions[i].chunk));
      }
      if (++times[static_cast<std::size_t>(layer - own.first)] > 1) {
        refuse(i, fmt::format("layer {} is reduced twice", layer));
      }
    }
  }

  /// No later backward adds to what the bucket holds.
  void final(std::size_t i) const {
    const JointCollective& bucket = joint(i);
    for (std::size_t later = i + 1; later < ranks_.instructions.size(); ++later) {
      const Instruction& each = ranks_.instructions[later];
      if (each.op != Opcode::backward || each.chunk != ranks_.instructions[i].chunk) continue;
      if (rounds_ > 1 && each.micro_batch != ranks_.instructions[i].micro_batch) continue;
      const LayerRange run = layers_of(program_.phases[each.target], layer_backward);
      const std::int64_t first = std::max(run.first, bucket.first_layer);
      if (first >= std::min(run.end, bucket.first_layer + bucket.layers)) continue;
      refuse(i, fmt::format("layer {} gets another gradient at {}", first,
                            place(program_, class_, later)));
    }
  }

  const Program& program_;
  const RankClass& ranks_;
  std::uint32_t class_;
  std::vector<std::size_t> reductions_;
  std::int64_t bits_ = 0, due_bits_ = 0;
  std::int64_t rounds_ = 1;  // how often each gradient is reduced
};

}  // namespace

void check_collectives(const Program& program) {
  CollectiveCheck{program}.run();
}

void check_reductions(const Program& program) {
  for (std::uint32_t c = 0; c < program.classes.size(); ++c) ReductionCheck{program, c}.run();
}

}  // namespace orrery::models
