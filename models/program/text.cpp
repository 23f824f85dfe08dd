// A Program as text: one item per line in a fixed order, so that `diff` shows what a plan, a
// schedule or a pass changed. Dependencies between instructions are written as the evaluation
// interprets them.

#include "models/program/text.hpp"

#include <optional>

#include "models/program/opcodes.hpp"
#include "models/program/walk.hpp"

namespace orrery::models {

namespace {

std::string_view mnemonic(Opcode op) {
  constexpr std::string_view of[] = {"FWD", "BWD",  "WGRAD", "SEND",   "RECV",     "REDUCE_GRAD",
                                     "SUM", "NORM", "OPT",   "GATHER", "COMPRESS", "UNSHARD"};
  return of[static_cast<int>(op)];
}

/// Is an axis written? The pipeline and the dense view's are, of which context and replica axes
/// only where they have several ranks.
bool shown(const AxisRow& row, const Mesh& mesh) {
  if (row.view == MeshView::experts) return false;
  const bool always = !(context_axes | MeshAxis::replica).has(row.axis);
  return always || mesh.degree(row.axis) > 1;
}

/// Writes one class's list; where it is written for one rank, transfers name their peer rank.
class ListWriter {
 public:
  ListWriter(const Program& program, const RankClass& ranks, std::optional<std::int64_t> rank,
             TextBuffer& text)
      : program_{program},
        ranks_{ranks},
        rank_{rank},
        text_{text},
        tags_(program.channels.size(), 0) {}

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

  void phase(Token, const Instruction& each) {
    if (each.op != Opcode::optimizer) put(text_, " c{} mb{}", each.chunk, each.micro_batch);
    put(text_, " phase={}", program_.phases[each.target].name);
    bound(" <- ", each, slot_in);
    bound(" -> ", each, slot_out);
    if (each.op != Opcode::weight_gradient) bound(" saved=", each, slot_saved);
    const bool of_chunk = each.op != Opcode::optimizer && each.op != Opcode::compress;
    if (of_chunk && splits_backward(program_.chunks[each.chunk])) split(each);
    text_.append(std::string_view{" q=compute"});
    after(each.input);
    if (each.awaits != no_token) put(text_, " awaits=i{}", each.awaits);
  }
  void compress(Token, const Instruction& each) {
    put(text_, " phase={} q=compute", program_.phases[each.target].name);
    if (each.awaits != no_token) put(text_, " awaits=i{}", each.awaits);
  }
  void send(Token, const Instruction& each) { transfer(each, slot_out); }
  void receive(Token, const Instruction& each) { transfer(each, receive_slot(program_, each)); }
  void joint(Token, const Instruction& each) {
    const JointCollective& joint = program_.collectives[each.target];
    if (each.op == Opcode::reduce_gradient) put(text_, " c{}", each.chunk);
    if (joint.accumulate_traffic > Bytes{} || (each.binds & bit(slot_weights)) != 0)
      put(text_, " mb{}", each.micro_batch);
    put(text_, " '{}' {} dtype={} bytes={}", joint.name, name(joint.kind),
        hardware::name(joint.dtype), joint.bytes.count());
    const LayerRange layers = program_.layers_of(joint);
    if (layers.count > 0) {
      put(text_, " layers={}..{}", layers.first, layers.first + layers.count - 1);
    }
    if ((each.binds & bit(slot_weights)) != 0) filled(each, joint);
    put(text_, " comm={} stages=", program_.communicators[joint.communicator].name);
    for (std::size_t i = 0; i < joint.classes.size(); ++i) {
      put(text_, "{}{}", i > 0 ? "," : "", program_.classes[joint.classes[i]].stage);
    }
    put(text_, " q=comm:dp");
    after(each.input);
    if (joint.accumulate_traffic > Bytes{}) {
      put(text_, " bucket={} sums={}", joint.buffer, joint.accumulate_traffic.count());
    }
    if (joint.host_waits) put(text_, " host_waits");
  }

 private:
  void line(const Instruction& each) {
    put(text_, "i{} {}", index_, mnemonic(each.op));
    visit(index_, each, *this);
    if (each.frees != 0) frees(each);
    text_.push_back('\n');
  }

  void transfer(const Instruction& each, Slot slot) {
    const Channel& channel = program_.channels[each.target];
    const bool sends = slot == slot_out;
    const std::string_view pipe = channel.forward ? "pp_f" : "pp_b";
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
    after(each.input);
  }

  void filled(const Instruction& each, const JointCollective& joint) {
    if (program_.holds(joint, ModelPart::embedding)) put(text_, " embedding");
    if (program_.holds(joint, ModelPart::head)) put(text_, " head");
    put(text_, " -> {}[{}]", ranks_.types[joint.buffer].name, each.bindings[slot_filled]);
  }

  void after(Token token) {
    if (token != no_token) put(text_, " after=i{}", token);
  }

  void bound(std::string_view before, const Instruction& each, Slot slot) {
    const std::uint32_t index = each.bindings[index_of(slot)];
    if (index == no_binding) return;
    put(text_, "{}{}[{}]", before, type_of(each, slot), index);
  }

  /// The buffers that weight gradients read.
  void split(const Instruction& each) {
    if (each.op != Opcode::backward) bound(" kept=", each, slot_kept);
    if (descends(each)) bound(" delayed=", each, slot_delayed);
  }

  void frees(const Instruction& each) {
    text_.append(std::string_view{" frees="});
    std::string_view separator;
    for (const Slot slot : {slot_saved, slot_in, slot_out, slot_weights, slot_kept, slot_delayed}) {
      if ((each.frees & bit(slot)) == 0) continue;
      if (slot == slot_weights) {
        for (Token t = first_gather(program_, ranks_, each.awaits); t <= each.awaits; ++t) {
          const Instruction& gather = ranks_.instructions[t];
          put(text_, "{}{}[{}]", separator, type_of(gather, slot), gather.bindings[slot_filled]);
          separator = ",";
        }
        continue;
      }
      put(text_, "{}{}[{}]", separator, type_of(each, slot), each.bindings[index_of(slot)]);
      separator = ",";
    }
  }

  std::string_view type_of(const Instruction& each, Slot slot) const {
    return ranks_.types[buffer_type(program_, ranks_, each, slot)].name;
  }

  const Program& program_;
  const RankClass& ranks_;
  std::optional<std::int64_t> rank_;
  TextBuffer& text_;
  std::vector<std::size_t> tags_;  // number of transfers so far, by channel
  Token index_ = 0;
};

void put_mesh(TextBuffer& text, const Program& program) {
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
    put(text, "class stage={} parameters={}", ranks.stage, ranks.parameters);
    if (ranks.frozen > Bytes{}) put(text, " frozen={}B", ranks.frozen.count());
    put(text, "\n");
    ListWriter{program, ranks, std::nullopt, text}.run();
  }
  return fmt::to_string(text);
}

}  // namespace orrery::models
