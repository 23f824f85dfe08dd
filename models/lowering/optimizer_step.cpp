#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "models/lowering/lower.hpp"
#include "models/lowering/matrices.hpp"
#include "models/operations/listed.hpp"
#include "models/plan/derived.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

/// Appends to every class the instructions that end the step.
class StepEnd {
 public:
  StepEnd(Program& program, const BlockInputs& inputs) : program_{program}, inputs_{inputs} {}

  void run() {
    if (program_.tied == TiedTable::copied && !trains_adapters(inputs_.plan)) tie_embeddings();
    if (program_.copies > 1) sum_copies();
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) sum_replicated(c);
    std::optional<std::uint32_t> norm;
    if (!listed_update_block(inputs_, 1)) norm = add_norm();
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) finish_class(c, norm);
  }

 private:
  using BlockMaker = Block (*)(const BlockInputs&, std::int64_t);

  bool sharded() const { return program_.sharding.optimizer; }

  std::int64_t shards() const { return sharded() ? program_.shards() : 1; }
  std::int64_t expert_shards() const {
    return sharded() ? program_.mesh.degree(MeshAxis::expert_data) : 1;
  }

  static Instruction step(Opcode op, std::uint32_t target) { return {.op = op, .target = target}; }

  std::uint32_t add(JointCollective collective) {
    return appended(program_.collectives, std::move(collective));
  }

  /// First and last stage each hold a copy of the embedding table and sum its gradients.
  void tie_embeddings() {
    const Block& head = program_.blocks[program_.kind(ModelPart::head).forward];
    const auto table =
        std::ranges::find_if(head.operands, [](const Operand& each) { return each.tied(); });
    ensure(table != head.operands.end(), "a tied head has no table");
    const auto first = static_cast<std::uint32_t>(program_.chunks.front().stage);
    const auto last = static_cast<std::uint32_t>(program_.chunks.back().stage);
    // Where gradients are already sharded, only the owned piece is summed.
    const std::int64_t shared = program_.classes.front().owned > 0 ? shards() : 1;
    const std::int64_t elements = equal_piece(table->elements(), shared);
    const std::uint32_t tie = add({.name = "tied embedding",
                                   .kind = Collective::all_reduce,
                                   .communicator = program_.communicator(CommunicatorRole::tie),
                                   .dtype = gradient_,
                                   .bytes = bytes_in(gradient_, elements),
                                   .classes = {std::min(first, last), std::max(first, last)}});
    program_.classes[first].instructions.push_back(step(Opcode::sum_replicas, tie));
    program_.classes[last].instructions.push_back(step(Opcode::sum_replicas, tie));
  }

  /// Sum over the layers of a class, embedding and head included.
  template <class Value>
  Value sum_of(const RankClass& ranks, Value LayerKind::*of_kind) const {
    Value sum{};
    for (const std::uint32_t chunk : ranks.chunks) {
      for (const Invocation& run : program_.phases[program_.chunks[chunk].forward].invocations) {
        const LayerKind* const kind = program_.use_of(run.block).kind;
        if (kind != nullptr) sum += kind->*of_kind * run.count;
      }
    }
    return sum;
  }
  std::int64_t parameters_of(const RankClass& ranks) const {
    return sum_of(ranks, &LayerKind::parameters);
  }
  /// Parameters of experts that have replicas of their own.
  std::int64_t expert_parameters(const RankClass& ranks) const {
    return sum_of(ranks, &LayerKind::expert_parameters);
  }

  /// DualPipe: a stage and its mirror stage hold copies of the same chunks and sum their gradients;
  /// where gradients are already sharded, only the owned pieces.
  void sum_copies() {
    const auto stages = static_cast<std::uint32_t>(program_.classes.size());
    for (std::uint32_t c = 0; c < stages / 2; ++c) {
      const std::uint32_t mirror = stages - 1 - c;
      const std::int64_t experts = expert_parameters(program_.classes[c]);
      const std::int64_t dense = parameters_of(program_.classes[c]) - experts;
      const std::int64_t held =
          equal_piece(dense, shards()) + equal_piece(experts, expert_shards());
      program_.communicators.push_back({.name = "copies.s" + std::to_string(c),
                                        .role = CommunicatorRole::mirror,
                                        .axes = MeshAxis::pipeline,
                                        .stages = {c, mirror},
                                        .time_class = TimeClass::dp});
      const std::uint32_t sum =
          add({.name = "gradients of both copies.s" + std::to_string(c),
               .kind = Collective::all_reduce,
               .communicator = static_cast<std::uint16_t>(program_.communicators.size() - 1),
               .dtype = gradient_,
               .bytes = bytes_in(gradient_, held),
               .classes = {c, mirror}});
      for (const std::uint32_t each : {c, mirror}) {
        program_.classes[each].instructions.push_back(step(Opcode::sum_replicas, sum));
      }
    }
  }

  /// Bytes of the gradients of which each rank of the tensor group holds a partial sum.
  Bytes partial_sums_of(const RankClass& ranks) const {
    Bytes sum{};
    for (const std::uint32_t id : ranks.chunks) {
      const Chunk& chunk = program_.chunks[id];
      sum += partial_sums_of(program_.phases[chunk.backward]);
      if (chunk.weight_gradient) sum += partial_sums_of(program_.phases[*chunk.weight_gradient]);
    }
    return sum;
  }
  Bytes partial_sums_of(const Phase& phase) const {
    Bytes sum{};
    for (const Invocation& run : phase.invocations) {
      for (const Operand& each : program_.blocks[run.block].operands) {
        const bool partial = each.sharding.partial.has(MeshAxis::tensor);
        if (each.role == Role::gradient && partial) sum += each.bytes() * run.count;
      }
    }
    return sum;
  }

  /// Sums partial gradients of replicated parameters over the tensor group; where gradients are
  /// already sharded, only the owned share of them.
  void sum_replicated(std::uint32_t c) {
    RankClass& ranks = program_.classes[c];
    Bytes bytes = partial_sums_of(ranks);
    if (bytes == Bytes{}) return;
    if (ranks.owned > 0) bytes = Bytes{equal_piece(bytes.count(), shards())};
    const std::uint32_t sum = add({.name = "replicated gradients.s" + std::to_string(ranks.stage),
                                   .kind = Collective::all_reduce,
                                   .communicator = program_.communicator(CommunicatorRole::tensor),
                                   .dtype = gradient_,
                                   .bytes = bytes,
                                   .classes = {c}});
    ranks.instructions.push_back(step(Opcode::sum_replicas, sum));
  }

  /// The gradient norm: one scalar, reduced over all ranks that hold different parameters; the host
  /// reads it to clip.
  std::uint32_t add_norm() {
    const DType state = program_.formats.state;
    const Mesh& mesh = program_.mesh;
    const bool experts_cut = mesh.degree(MeshAxis::expert) > 1 ||
                             mesh.degree(MeshAxis::expert_tensor) > mesh.degree(MeshAxis::tensor);
    const bool everywhere = sharded() || experts_cut;
    const CommunicatorRole over = everywhere ? CommunicatorRole::world : CommunicatorRole::model;
    std::vector<std::uint32_t> everyone;
    for (std::uint32_t c = 0; c < program_.classes.size(); ++c) everyone.push_back(c);
    return add({.name = "gradient norm",
                .kind = Collective::all_reduce,
                .communicator = program_.communicator(over),
                .dtype = state,
                .bytes = Bytes{bits(state) / 8},
                .classes = std::move(everyone),
                .host_waits = true});
  }

  /// The phase that runs a step block over `elements`, shared by classes of equal size.
  std::uint32_t phase_of(std::int64_t elements, BlockMaker make) {
    const auto [known, fresh] = phases_.try_emplace({make, elements}, 0);
    if (fresh) known->second = program_.add_phase(make(inputs_, elements));
    return known->second;
  }

  /// The phase in which the class's busiest rank runs Muon on its matrices.
  std::uint32_t muon(RankClass& ranks) {
    const auto [dense, experts] = matrices_of(program_, ranks, inputs_.model.embedding.vocab);
    ranks.matrices = equal_piece(elements_of(dense), shards()) +
                     equal_piece(elements_of(experts), expert_shards());
    Phase phase{.name = "muon.s" + std::to_string(ranks.stage), .invocations = {}};
    for (const auto& [all, among] :
         {std::pair{&dense, shards()}, std::pair{&experts, expert_shards()}}) {
      for (const EqualMatrices& each : of_busiest(*all, among)) {
        const auto [known, fresh] = matrices_.try_emplace({each.rows, each.columns}, 0);
        if (fresh) {
          known->second = appended(program_.blocks, muon_block(inputs_, each.rows, each.columns));
        }
        phase.invocations.push_back({known->second, -1, each.count});
      }
    }
    return appended(program_.phases, std::move(phase));
  }

  /// The update that a list of operations states, or AdamW.
  static Block update_block(const BlockInputs& inputs, std::int64_t elements) {
    std::optional<Block> stated = listed_update_block(inputs, elements);
    return stated ? std::move(*stated) : adam_block(inputs, elements);
  }

  /// Updates that many elements. Of an optimizer that is partly on the host the GPU updates its
  /// part first, then the host.
  /// Source  Megatron-Core, optimizer/cpu_offloading/hybrid_optimizer.py: one optimizer after the
  ///         other, unless overlap_cpu_optimizer_d2h_h2d is set
  void update(std::vector<Instruction>& list, std::int64_t elements) {
    const std::int64_t there = program_.sharding.on_host(elements);
    if (there > 0 && there < elements) {
      list.push_back(step(Opcode::optimizer, phase_of(elements - there, adam_on_gpu_block)));
      elements = there;
    }
    list.push_back(step(Opcode::optimizer, phase_of(elements, update_block)));
  }

  /// norm  of the gradients, by which they are clipped; none where the update is stated
  void finish_class(std::uint32_t c, std::optional<std::uint32_t> norm) {
    RankClass& ranks = program_.classes[c];
    ranks.parameters = parameters_of(ranks);
    ranks.frozen += sum_of(ranks, &LayerKind::frozen);
    const std::int64_t experts = expert_parameters(ranks), dense = ranks.parameters - experts;
    if (ranks.owned == 0)
      ranks.owned = equal_piece(dense, shards()) + equal_piece(experts, expert_shards());
    const std::int64_t owned = ranks.owned;
    std::vector<Instruction>& list = ranks.instructions;
    if (norm) {
      list.push_back(step(Opcode::optimizer, phase_of(owned, gradient_norm_block)));
      list.push_back(step(Opcode::norm, *norm));
    }
    if (program_.sharding.whole_matrices) {
      list.push_back(step(Opcode::optimizer, muon(ranks)));
    }
    if (owned > ranks.matrices) {
      update(list, owned - ranks.matrices);
    }
    if (!sharded() || program_.sharding.parameters) return;
    if (shards() > 1) gather(c, "parameters", CommunicatorRole::data, dense);
    if (experts > 0 && expert_shards() > 1) {
      gather(c, "experts", CommunicatorRole::expert_data, experts);
    }
  }

  /// ZeRO-1 and 2: every replica gathers the parameters that the others updated.
  void gather(std::uint32_t c, const std::string& what, CommunicatorRole over,
              std::int64_t elements) {
    RankClass& ranks = program_.classes[c];
    const DType storage = inputs_.plan.formats.low_precision_gather ? program_.formats.compute
                                                                    : program_.formats.storage;
    const bool broadcasts = inputs_.software.zero_gather == ZeroGather::broadcast;
    ranks.instructions.push_back(step(
        Opcode::gather, add({.name = what + ".s" + std::to_string(ranks.stage),
                             .kind = broadcasts ? Collective::broadcast : Collective::all_gather,
                             .communicator = program_.communicator(over),
                             .dtype = storage,
                             .bytes = bytes_in(storage, elements),
                             .classes = {c},
                             .gathers_parameters = true,
                             .hidden_in_next_step = inputs_.plan.overlap.with_forward()})));
  }

  Program& program_;
  const BlockInputs& inputs_;
  DType gradient_ = program_.formats.gradient;
  std::map<std::pair<BlockMaker, std::int64_t>, std::uint32_t> phases_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> matrices_;  // blocks, by size
};

}  // namespace

Program insert_optimizer(Program program, const BlockInputs& inputs) {
  StepEnd{program, inputs}.run();
  return program;
}

}  // namespace orrery::models
