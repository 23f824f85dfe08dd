// A Program as text: one thing per line in an order that never changes, so that `diff` shows what
// a plan, a schedule or a pass moved. Dependencies between instructions are written out as the
// evaluation means them.

#include "models/program/text.hpp"

#include <limits>
#include <optional>

namespace orrery::models {

namespace {

std::string_view mnemonic(Opcode op) {
  constexpr std::string_view of[] = {"FWD",  "BWD", "SEND",   "RECV",     "REDUCE_GRAD", "TIE",
                                     "NORM", "OPT", "GATHER", "COMPRESS", "UNSHARD"};
  return of[static_cast<int>(op)];
}

/// Axes of the dense view and the pipeline, without a context axis that is not used.
bool shown(const AxisRow& row, const Mesh& mesh) {
  if (row.view == MeshView::experts) return false;
  return row.axis != MeshAxis::context || mesh.degree(row.axis) > 1;
}

/// Writes one class's list, with peers as ranks where it is one rank's.
class ListWriter {
 public:
  ListWriter(const Program& program, const RankClass& ranks, std::optional<std::int64_t> rank,
             TextBuffer& text)
      : program_{program},
        ranks_{ranks},
        rank_{rank},
        text_{text},
        tags_(program.channels.size(), 0),
        joints_(program.collectives.size(), 0) {}

  void run() {
    for (const PersistentBuffer& each : ranks_.persistent) {
      put(text_, "held {} {} bytes={}\n", each.name, name(each.kind), each.bytes.count());
    }
    for (const BufferType& each : ranks_.types) {
      put(text_, "buffer {} {} bytes={}\n", each.name, name(each.kind), each.bytes.count());
    }
    for (index_ = 0; index_ < ranks_.instructions.size(); ++index_) {
      line(ranks_.instructions[index_]);
    }
  }

 private:
  static constexpr std::size_t nothing = std::numeric_limits<std::size_t>::max();

  void line(const Instruction& each) {
    put(text_, "i{} {}", index_, mnemonic(each.op));
    switch (each.op) {
      case Opcode::forward:
      case Opcode::backward:
        compute(each, "compute", received_);
        break;
      case Opcode::optimizer:
        compute(each, "compute", joined_);
        break;
      case Opcode::compress:
        aside(each);
        break;
      case Opcode::send:
      case Opcode::receive:
        transfer(each);
        break;
      default:
        joint(each);
        break;
    }
    if (each.frees != 0) frees(each);
    text_.push_back('\n');
  }

  void compute(const Instruction& each, std::string_view queue, std::size_t& awaited) {
    if (each.op != Opcode::optimizer) put(text_, " c{} mb{}", each.chunk, each.micro_batch);
    put(text_, " phase={}", program_.phases[each.target].name);
    bound(" <- ", each, slot_in);
    bound(" -> ", each, slot_out);
    bound(" saved=", each, slot_saved);
    put(text_, " q={}", queue);
    after(awaited);
    if (each.awaits != no_binding) put(text_, " awaits=i{}", joints_[each.awaits]);
    awaited = nothing;
    computed_ = index_;
  }

  void aside(const Instruction& each) {
    put(text_, " phase={} q=compute", program_.phases[each.target].name);
    if (each.awaits != no_binding) put(text_, " awaits=i{}", joints_[each.awaits]);
    computed_ = index_;
  }

  void transfer(const Instruction& each) {
    const Channel& channel = program_.channels[each.target];
    const bool sends = each.op == Opcode::send;
    const std::string_view pipe = channel.forward ? "pp_f" : "pp_b";
    const Slot slot = sends ? slot_out : channel.forward ? slot_saved : slot_in;
    put(text_, " c{} mb{}", each.chunk, each.micro_batch);
    bound(" ", each, slot);
    text_.append(std::string_view{sends ? " -> " : " <- "});
    const std::int64_t stage = program_.classes[sends ? channel.to : channel.from].stage;
    if (rank_) {
      const Mesh& mesh = program_.mesh;
      put(text_, "rank {}", mesh.moved(*rank_, MeshAxis::pipeline, stage));
    } else {
      put(text_, "stage {}", stage);
    }
    put(text_, " channel={} comm={} tag={} bytes={} q=comm:{}", each.target, pipe,
        tags_[each.target]++, channel.bytes.count(), pipe);
    if (sends) after(computed_);
    if (!sends) received_ = index_;
  }

  void joint(const Instruction& each) {
    const JointCollective& joint = program_.collectives[each.target];
    if (each.op == Opcode::reduce_gradient) put(text_, " c{}", each.chunk);
    if (joint.sums > Bytes{} || each.op == Opcode::unshard) put(text_, " mb{}", each.micro_batch);
    put(text_, " '{}' {} dtype={} bytes={}", joint.name, name(joint.kind),
        hardware::name(joint.dtype), joint.bytes.count());
    if (joint.layers > 0) {
      put(text_, " layers={}..{}", joint.first_layer, joint.first_layer + joint.layers - 1);
    }
    if (each.op == Opcode::unshard) filled(each, joint);
    put(text_, " comm={} stages=", program_.communicators[joint.communicator].name);
    for (std::size_t i = 0; i < joint.classes.size(); ++i) {
      put(text_, "{}{}", i > 0 ? "," : "", program_.classes[joint.classes[i]].stage);
    }
    put(text_, " q=comm:dp");
    after(computed_);
    if (joint.sums > Bytes{}) {
      put(text_, " bucket={} sums={}", joint.buffer, joint.sums.count());
    }
    if (joint.host_waits) put(text_, " host_waits");
    joined_ = index_;
    joints_[each.target] = index_;
  }

  void filled(const Instruction& each, const JointCollective& joint) {
    if ((joint.ends & end_embedding) != 0) put(text_, " embedding");
    if ((joint.ends & end_head) != 0) put(text_, " head");
    put(text_, " -> {}[{}]", ranks_.types[joint.buffer].name, each.bindings[slot_filled]);
  }

  void after(std::size_t index) {
    if (index != nothing) put(text_, " after=i{}", index);
  }

  void bound(std::string_view before, const Instruction& each, Slot slot) {
    if (each.bindings[slot] == no_binding) return;
    put(text_, "{}{}[{}]", before, type_of(each, slot), each.bindings[slot]);
  }

  void frees(const Instruction& each) {
    text_.append(std::string_view{" frees="});
    std::string_view separator;
    for (const Slot slot : {slot_saved, slot_in, slot_out}) {
      if ((each.frees & (1U << slot)) == 0) continue;
      put(text_, "{}{}[{}]", separator, type_of(each, slot), each.bindings[slot]);
      separator = ",";
    }
    if ((each.frees & (1U << slot_weights)) == 0) return;
    const Instruction& filled = ranks_.instructions[joints_[each.awaits]];
    put(text_, "{}{}[{}]", separator, ranks_.types[program_.collectives[each.awaits].buffer].name,
        filled.bindings[slot_filled]);
  }

  std::string_view type_of(const Instruction& each, Slot slot) const {
    const auto v = static_cast<std::size_t>(each.chunk / program_.plan.pipeline);
    const ChunkBuffers& buffers = ranks_.chunk_buffers[v];
    if (slot == slot_saved) return ranks_.types[buffers.saved].name;
    if (slot == slot_in) return ranks_.types[buffers.gradient_in].name;
    const bool forward = each.op == Opcode::forward ||
                         (each.op == Opcode::send && program_.channels[each.target].forward);
    return ranks_.types[forward ? buffers.out : buffers.gradient_out].name;
  }

  const Program& program_;
  const RankClass& ranks_;
  std::optional<std::int64_t> rank_;
  TextBuffer& text_;
  std::vector<std::size_t> tags_;    // transfers so far, by channel
  std::vector<std::size_t> joints_;  // where in the list, by joint collective
  std::size_t index_ = 0;
  std::size_t received_ = nothing, computed_ = nothing, joined_ = nothing;
};

void put_mesh(TextBuffer& text, const Program& program) {
  put_model(text, program.model);
  put(text, "plan {}\n", to_json(program.plan).dump());
  put(text, "mesh");
  for (const AxisRow& each : axes) {
    if (shown(each, program.mesh)) put(text, " {}={}", each.key, program.mesh.degree(each.axis));
  }
  text.push_back('\n');
}

/// "tensor=0 data=* pipeline=1": the ranks that agree with `rank` on the axes not spanned.
void put_members(TextBuffer& text, const Communicator& communicator, const Mesh& mesh,
                 std::int64_t rank) {
  for (const AxisRow& each : axes) {
    if (!shown(each, mesh)) continue;
    if (!communicator.axes.has(each.axis)) {
      put(text, " {}={}", each.key, mesh.coordinate(rank, each.axis));
    } else if (each.axis == MeshAxis::pipeline && !communicator.stages.empty()) {
      put(text, " {}={}", each.key, fmt::join(communicator.stages, ","));
    } else {
      put(text, " {}=*", each.key);
    }
  }
}

}  // namespace

std::string text_of_rank(const Program& program, std::int64_t rank) {
  const Mesh& mesh = program.mesh;
  const std::int64_t stage = mesh.stage_of(rank);
  TextBuffer text;
  put(text, "rank {}", rank);
  for (const AxisRow& each : axes) {
    const bool pipeline = each.axis == MeshAxis::pipeline;
    if (!shown(each, mesh)) continue;
    put(text, " {}={}", pipeline ? "stage" : each.key, mesh.coordinate(rank, each.axis));
  }
  text.push_back('\n');
  for (const Communicator& each : program.communicators) {
    put(text, "communicator {}", each.name);
    put_members(text, each, mesh, rank);
    text.push_back('\n');
  }
  ListWriter{program, program.classes.at(static_cast<std::size_t>(stage)), rank, text}.run();
  return fmt::to_string(text);
}

std::string text_of(const Program& program) {
  TextBuffer text;
  put_mesh(text, program);
  for (const Communicator& each : program.communicators) {
    put(text, "communicator {} spans=", each.name);
    std::string_view separator;
    for (const AxisRow& axis : axes) {
      if (!each.axes.has(axis.axis)) continue;
      put(text, "{}{}", separator, axis.key);
      separator = ",";
    }
    if (!each.stages.empty()) put(text, " stages={}", fmt::join(each.stages, ","));
    text.push_back('\n');
  }
  for (const Block& block : program.blocks) put_block(text, block, program);
  for (const Phase& phase : program.phases) put_phase(text, phase, program);
  for (const RankClass& ranks : program.classes) {
    put(text, "class stage={} parameters={}\n", ranks.stage, ranks.parameters);
    ListWriter{program, ranks, std::nullopt, text}.run();
  }
  return fmt::to_string(text);
}

}  // namespace orrery::models
