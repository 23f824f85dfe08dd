#include "tests/models/evaluation/random_program.hpp"

#include <algorithm>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>

#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

/// Draws that are the same with every standard library.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_{seed} {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::int64_t from(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool percent(std::int64_t chance) { return below(100) < chance; }
  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<std::int64_t>(values.size()))];
  }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1],
                values[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
    }
  }

 private:
  std::mt19937_64 random_;
};

/// Draws times of one flavour: always zero, few values (so that many tie), or any up to a limit.
class TimeDraw {
 public:
  TimeDraw(Draw& draw, std::initializer_list<std::int64_t> limits)
      : draw_{draw}, limit_{draw.one_of(limits)}, ties_{draw.percent(40)} {}

  Time operator()() {
    if (limit_ == 0) return Time{};
    return Time{ties_ ? limit_ / 2 * draw_.below(3) : draw_.from(0, limit_)};
  }

 private:
  Draw& draw_;
  std::int64_t limit_;
  bool ties_;
};

class Maker {
 public:
  Maker(std::uint64_t seed, std::int64_t most_context) : draw_{seed}, most_context_{most_context} {}

  Case make() {
    draw_shape();
    const std::int64_t blocks = draw_.from(1, 5);
    host_waits_percent_ = draw_.one_of({0, 0, 0, 10});
    for (std::int64_t b = 0; b < blocks; ++b) add_block(b);
    add_phases();
    add_schedule(program_, schedule_, shape_,
                 Mesh::Degrees{.tensor = tensor_,
                               .context_heads = heads_,
                               .context = context_,
                               .data = data_,
                               .replica = copies_});
    share_phases();
    program_ = insert_transfers(std::move(program_));
    if (draw_.percent(80)) add_joints_and_optimizers();
    if (draw_.percent(50)) add_asides();
    if (draw_.percent(60)) add_waits();
    program_ = name_tokens(std::move(program_));
    if (draw_.percent(40)) vary_tokens();
    price();
    return std::move(made_);
  }

 private:
  void draw_shape() {
    tensor_ = draw_.from(1, 3);
    data_ = draw_.from(1, 3);
    if (most_context_ > 1) {
      context_ = draw_.from(1, most_context_);
      heads_ = draw_.from(1, 2);
      copies_ = draw_.from(1, 2);
    }
    shape_.stages = draw_.from(1, 5);
    shape_.virtual_stages = draw_.percent(50) ? 1 : draw_.from(2, 3);
    if (shape_.virtual_stages > 1) {
      schedule_ = "interleaved-1f1b";
      shape_.micro_batches = shape_.stages * draw_.from(1, shape_.stages > 2 ? 2 : 4);
    } else {
      schedule_ = draw_.one_of<const char*>({"naive", "gpipe", "1f1b", "1f1b"});
      shape_.micro_batches = draw_.from(1, 7);
    }
  }

  void add_block(std::int64_t b) {
    Block block = block_of("block" + std::to_string(b));
    const std::int64_t operations = draw_.percent(5) ? 0 : draw_.from(1, 7);
    const std::int64_t output_percent = draw_.one_of({0, 20, 50, 100});
    for (std::int64_t i = 0; i < operations; ++i) {
      const Lane queue = draw_.one_of({Lane::compute, Lane::compute, Lane::compute, Lane::compute,
                                       Lane::tensor, Lane::tensor, Lane::data, Lane::copy});
      Operation op = operation_on(queue, dependencies(i), draw_.percent(output_percent));
      if (draw_.percent(2)) op.queue = Lane::host;
      op.host_waits = draw_.percent(host_waits_percent_);
      if (queue == Lane::tensor && draw_.percent(60)) {
        op.kind = OpKind::collective;
        op.mutable_communicator() = tensor_group;
      }
      if (context_ * heads_ > 1 && draw_.percent(20)) pass_round(op);
      block.operations.push_back(std::move(op));
    }
    program_.blocks.push_back(std::move(block));
  }

  /// A collective between ranks that share a sequence, along one of their two axes.
  void pass_round(Operation& op) {
    const bool trades = heads_ > 1 && (context_ == 1 || draw_.percent(50));
    op.kind = OpKind::collective;
    op.queue = Lane::context;
    const auto first = static_cast<std::uint16_t>(tie_group + 1);
    op.mutable_communicator() =
        static_cast<std::uint16_t>(first + (trades && context_ > 1 ? 1 : 0));
  }

  /// Up to three of the input and the operations before, in any order.
  std::vector<OpId> dependencies(std::int64_t i) {
    std::vector<OpId> earlier;
    for (std::int64_t id = 0; id < i; ++id) earlier.push_back(static_cast<OpId>(id));
    draw_.shuffle(earlier);
    earlier.resize(static_cast<std::size_t>(std::min(i, draw_.below(3))));
    if (draw_.percent(50)) earlier.push_back(block_input);
    draw_.shuffle(earlier);
    return earlier;
  }

  void add_phases() {
    const std::int64_t blocks = static_cast<std::int64_t>(program_.blocks.size());
    const std::int64_t most = 2 * shape_.stages * shape_.virtual_stages;
    const std::int64_t phases = draw_.from(1, most);
    for (std::int64_t p = 0; p < phases; ++p) {
      Phase phase{"phase" + std::to_string(p), {}};
      const std::int64_t runs = draw_.percent(3) ? 0 : draw_.from(1, 3);
      for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t count = draw_.percent(50) ? 1 : draw_.from(2, 5);
        phase.invocations.push_back({static_cast<std::uint32_t>(draw_.below(blocks)), -1, count});
      }
      program_.phases.push_back(std::move(phase));
    }
  }

  std::uint32_t any_phase() {
    return static_cast<std::uint32_t>(
        draw_.below(static_cast<std::int64_t>(program_.phases.size())));
  }

  /// Which phase a chunk runs forward, and which backward.
  void share_phases() {
    const std::int64_t most = 2 * shape_.stages * shape_.virtual_stages;
    std::vector<std::uint32_t> of;
    for (std::int64_t i = 0; i < most; ++i) of.push_back(any_phase());
    for (RankClass& ranks : program_.classes) {
      for (Instruction& slot : ranks.instructions) slot.target = of[slot.target];
    }
  }

  /// Runs the lists in a random order in which no receive is before its send, and copies them with
  /// more in between. What is put into several lists at one moment cannot make them wait in a
  /// circle.
  void add_joints_and_optimizers() {
    const std::int64_t joint_percent = draw_.one_of({2, 5, 20});
    const std::vector<RankClass> before = program_.classes;
    std::size_t left = 0;
    for (RankClass& ranks : program_.classes) {
      left += ranks.instructions.size();
      ranks.instructions.clear();
    }
    std::vector<std::size_t> at(before.size(), 0);
    std::vector<std::int64_t> in_flight(program_.channels.size(), 0);
    for (std::int64_t more = draw_.below(4 * shape_.stages); left > 0 || more > 0;) {
      if (draw_.percent(joint_percent) && program_.collectives.size() < 12) add_joint();
      const auto c = static_cast<std::size_t>(draw_.below(shape_.stages));
      const std::vector<Instruction>& from = before[c].instructions;
      if (left == 0) {
        --more;
      } else if (at[c] < from.size() && copy(c, from[at[c]], in_flight)) {
        ++at[c];
        --left;
      }
      if (draw_.percent(4)) add_optimizer(c);
    }
  }

  /// False if it is a receive whose send is still to come.
  bool copy(std::size_t c, const Instruction& each, std::vector<std::int64_t>& in_flight) {
    if (each.op == Opcode::receive && in_flight[each.target]-- == 0) {
      in_flight[each.target] = 0;
      return false;
    }
    if (each.op == Opcode::send) ++in_flight[each.target];
    program_.classes[c].instructions.push_back(each);
    return true;
  }

  void add_joint() {
    JointCollective joint;
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) {
      if (draw_.percent(50)) joint.classes.push_back(c);
    }
    if (joint.classes.empty()) joint.classes.push_back(0);
    draw_.shuffle(joint.classes);
    joint.communicator = joint.classes.size() == 1
                             ? data_group
                             : draw_.one_of({data_group, model_group, world_group, tie_group});
    joint.host_waits = draw_.percent(20);
    const Opcode op = draw_.one_of({Opcode::reduce_gradient, Opcode::sum_replicas, Opcode::norm,
                                    Opcode::gather, Opcode::unshard});
    append_joint(made_, op, std::move(joint), Time{}, Time{});
  }

  /// Compressions anywhere, between a receive and the slot that it feeds and before a send too.
  void add_asides() {
    for (RankClass& ranks : program_.classes) {
      std::vector<Instruction> with;
      for (const Instruction& each : ranks.instructions) {
        with.push_back(each);
        if (!draw_.percent(10)) continue;
        Instruction aside;
        aside.op = Opcode::compress;
        aside.target = any_phase();
        with.push_back(aside);
      }
      ranks.instructions = std::move(with);
    }
  }

  /// Phases that await one of the joint collectives before them, not always the last.
  void add_waits() {
    const std::int64_t wait_percent = draw_.one_of({10, 50, 90});
    for (RankClass& ranks : program_.classes) {
      std::vector<std::uint32_t> met;
      for (Instruction& each : ranks.instructions) {
        if (is_joint(each)) met.push_back(each.target);
        if (met.empty() || !runs_phase(each) || !draw_.percent(wait_percent)) continue;
        const auto back = draw_.below(std::min<std::int64_t>(3, std::ssize(met)));
        each.awaits = met[met.size() - 1 - static_cast<std::size_t>(back)];
      }
    }
  }

  /// Any earlier instruction may be what another one awaits.
  void vary_tokens() {
    for (RankClass& ranks : program_.classes) {
      for (Token i = 0; i < ranks.instructions.size(); ++i) {
        Instruction& each = ranks.instructions[i];
        if (draw_.percent(20)) each.input = any_before(i);
        if (runs_phase(each) && draw_.percent(10)) each.awaits = any_before(i);
      }
    }
  }
  Token any_before(Token i) {
    return i == 0 || draw_.percent(10) ? no_token
                                       : static_cast<Token>(i - 1 - draw_.below(std::min(i, 6U)));
  }

  void add_optimizer(std::size_t c) {
    std::vector<Instruction>& list = program_.classes[c].instructions;
    Instruction each;
    each.op = Opcode::optimizer;
    each.target = any_phase();
    list.push_back(each);
  }

  void price() {
    PricedProgram& priced = made_.priced;
    priced.program = made_.program.get();
    TimeDraw launch{draw_, {0, 0, 10, 300, 2000}};
    TimeDraw duration{draw_, {10, 1000, 1000, 1000}};
    TimeDraw transfer{draw_, {0, 100, 2000, 20000}};
    TimeDraw collective{draw_, {0, 3000, 20000}};
    for (const Block& block : program_.blocks) {
      std::vector<PricedOperation>& prices = priced.blocks.emplace_back();
      for (std::size_t i = 0; i < block.operations.size(); ++i) {
        prices.push_back({launch(), duration()});
      }
    }
    for (std::size_t c = 0; c < program_.channels.size(); ++c) {
      priced.channels.push_back(transfer());
    }
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      priced.collectives[j].duration = collective();
      priced.collectives[j].launch = launch();
    }
    priced.transfer_launch = launch();
    priced.step_launch = launch();
    priced.synchronous = draw_.percent(20);
    priced.blocking_receive = draw_.percent(30);
    priced.blocking_communication = draw_.percent(20);
    if (draw_.percent(60)) hide(collective);
    if (draw_.percent(10)) priced.bound.time = 20 * collective();
  }

  /// Transfers of which others see only a part, and what is left of the step before.
  void hide(TimeDraw& time) {
    PricedProgram& priced = made_.priced;
    for (std::size_t b = 0; b < program_.blocks.size(); ++b) {
      for (std::size_t i = 0; i < priced.blocks[b].size(); ++i) {
        const Lane queue = program_.blocks[b].operations[i].queue;
        if (queue != Lane::tensor && queue != Lane::context) continue;
        (draw_.percent(50) ? priced.blocks[b][i].lead : priced.blocks[b][i].trail) = time();
      }
    }
    for (PricedOperation& each : priced.collectives) {
      if (draw_.percent(50)) each.lead = time();
    }
    for (std::size_t c = 0; c < program_.classes.size(); ++c) priced.carried.push_back(time());
  }

  Draw draw_;
  Case made_;
  Program& program_ = *made_.program;
  PipelineShape shape_;
  std::string schedule_;
  std::int64_t most_context_ = 1;
  std::int64_t tensor_ = 1, data_ = 1, context_ = 1, heads_ = 1, copies_ = 1;
  std::int64_t host_waits_percent_ = 0;
};

}  // namespace

Case random_program(std::uint64_t seed, std::int64_t most_context) {
  return Maker{seed, most_context}.make();
}

Case random_program_with_experts(std::uint64_t seed) {
  Case made = random_program(seed);
  Program& program = *made.program;
  Draw draw{seed + 77};
  const std::int64_t ranks = program.mesh.stage_ranks();
  std::vector<std::pair<std::int64_t, std::int64_t>> folds;
  for (std::int64_t ep = 1; ep <= ranks; ++ep) {
    for (std::int64_t etp = 1; ep * etp <= ranks; ++etp) {
      if (ranks % (ep * etp) == 0) folds.emplace_back(ep, etp);
    }
  }
  draw.shuffle(folds);
  program.mesh = program.mesh.with_experts(folds.front().first, folds.front().second);
  const auto first = static_cast<std::uint16_t>(program.communicators.size());
  using Role = CommunicatorRole;
  program.communicators.push_back({"etp", Role::expert_tensor, MeshAxis::expert_tensor});
  program.communicators.push_back({"ep", Role::expert, MeshAxis::expert});
  program.communicators.push_back({"edp", Role::expert_data, MeshAxis::expert_data});
  for (Block& block : program.blocks) {
    for (Operation& op : block.operations) {
      const bool collective = op.kind == OpKind::collective;
      if (!collective || !draw.percent(60)) continue;
      op.mutable_communicator() = static_cast<std::uint16_t>(first + draw.below(2));
    }
  }
  for (JointCollective& joint : program.collectives) {
    if (joint.communicator == data_group && draw.percent(50)) {
      joint.communicator = static_cast<std::uint16_t>(first + 2);
    }
  }
  return made;
}

}  // namespace orrery::models
