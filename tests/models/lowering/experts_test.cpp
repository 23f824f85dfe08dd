// Layers with experts: what a rank holds, computes and sends, by hand.

#include <catch2/catch.hpp>

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/prediction.hpp"
#include "models/program/check/check.hpp"
#include "models/program/memory.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// h = 8, two layers of 4 experts of width 16, two for each token; sequences of 8 tokens.
Model tiny_experts() {
  ModelDraft model = draft_of(tiny_gpt(2));
  model.family = Family::llama;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = false;
  model.experts.count = 4;
  model.experts.per_token = 2;
  model.mlp.width = 16;
  return built(std::move(model));
}

Plan expert_plan(std::int64_t tensor, std::int64_t data, std::int64_t expert,
                 std::int64_t expert_tensor = 1) {
  Plan plan;
  plan.tensor = tensor;
  plan.sequence_parallel = tensor > 1;
  plan.data = data;
  plan.experts.ranks = expert;
  plan.experts.tensor = expert_tensor;
  plan.batch.global = data;
  plan.batch.seq_len = 8;
  return plan;
}

Program experts_program(const Plan& plan, const Model& model = tiny_experts()) {
  const Software software = plain_software();
  Program program = lower(BlockInputs{model, plan, software});
  check(program);
  return program;
}

const Block& forward_of(const Program& program) {
  return program.blocks[program.kind(ModelPart::layer).forward];
}
const Block& backward_of(const Program& program) {
  return program.blocks[program.kind(ModelPart::layer).backward];
}

const Operation& named(const Block& block, std::string_view name) {
  const auto found = std::find_if(block.operations.begin(), block.operations.end(),
                                  [&](const Operation& each) { return each.name == name; });
  REQUIRE(found != block.operations.end());
  return *found;
}

std::int64_t sent(const Block& block, Collective kind) {
  std::int64_t bytes = 0;
  for (const Operation& op : block.operations) {
    if (op.kind == OpKind::collective && op.collective() == kind) bytes += op.bytes.count();
  }
  return bytes;
}

const JointCollective* joint_named(const Program& program, std::string_view part) {
  const auto found =
      std::find_if(program.collectives.begin(), program.collectives.end(),
                   [&](const auto& each) { return each.name.find(part) != std::string::npos; });
  return found == program.collectives.end() ? nullptr : &*found;
}

TEST_CASE("Dispatch and combine send every copy of a token, forward and backward") {
  // T k h 2 bytes each: 8 tokens x 2 copies x 8 x 2 = 256, nccl-tests' size, of which (n-1)/n go
  // to others; two forward, two backward.
  const Program program = experts_program(expert_plan(1, 2, 2));
  CHECK(sent(forward_of(program), Collective::all_to_all) == 512);
  CHECK(sent(backward_of(program), Collective::all_to_all) == 512);
  CHECK(program.role_of(named(forward_of(program), "dispatched.all_to_all").communicator()) ==
        CommunicatorRole::expert);
}

TEST_CASE("With all experts on every rank nothing is sent") {
  const Program program = experts_program(expert_plan(1, 2, 1));
  CHECK(sent(forward_of(program), Collective::all_to_all) == 0);
  CHECK(joint_named(program, "experts") == nullptr);  // reduced with the rest of the layer
}

TEST_CASE("A rank's experts multiply the rows of all ranks that share them") {
  // Two ranks with 8 tokens each send 32 rows to 4 experts, 2 on each: 16 rows to a rank, 8 to an
  // expert. Gate and up 2 x 16 x 8 x 32 = 8192 FLOPs, down 2 x 16 x 16 x 8 = 4096.
  const Program program = experts_program(expert_plan(1, 2, 2));
  const Operation& up = named(forward_of(program), "experts.up");
  CHECK(up.kind == OpKind::grouped_gemm);
  CHECK(up.group_rows() == std::vector<std::int64_t>{8, 8});
  CHECK(up.flops.count() == 8192);
  CHECK(named(forward_of(program), "experts.down").flops.count() == 4096);
  const Operation& gradient = named(backward_of(program), "experts.up.wgrad");
  CHECK(gradient.flops.count() == 8192);
  CHECK(gradient.group_rows() == std::vector<std::int64_t>{8, 8});
}

TEST_CASE("Experts cut over ranks get their rows gathered and their sums scattered") {
  // Tensor 2 with sequence parallelism: 4 tokens to a rank, 8 rows, 128 B of them; gathered from
  // both ranks 256 B. Each rank has half of every expert's columns: 2 x 16 rows x 8 x 16.
  const Program program = experts_program(expert_plan(2, 1, 1, 2));
  const Operation& gather = named(forward_of(program), "dispatched.gather");
  CHECK(gather.collective() == Collective::all_gather);
  CHECK(gather.bytes.count() == 256);
  CHECK(named(forward_of(program), "experts.up").flops.count() == 2 * 16 * 8 * 16);
  CHECK(program.role_of(gather.communicator()) == CommunicatorRole::expert_tensor);
}

TEST_CASE("A rank holds its share of the experts, and all of them add up to the model") {
  // Experts of a layer: 4 (8 x 32 + 16 x 8) = 1536, half of them 768; router 8 x 4.
  const Program one = experts_program(expert_plan(1, 1, 1));
  const Program two = experts_program(expert_plan(1, 2, 2));
  const LayerKind& whole = one.kind(ModelPart::layer);
  const LayerKind& half = two.kind(ModelPart::layer);
  CHECK(whole.parameters - half.parameters == 768);
  CHECK(half.expert_parameters == 768);
  CHECK(one.classes.front().parameters == tiny_experts().parameters);
}

TEST_CASE("Experts' gradients are summed over their replicas alone") {
  // Four ranks, experts over two: 768 fp32 sums of each of two layers between two replicas; what
  // is left of the model between four.
  const Program program = experts_program(expert_plan(1, 4, 2));
  const JointCollective* experts = joint_named(program, "experts' gradients");
  REQUIRE(experts != nullptr);
  CHECK(program.communicators[experts->communicator].name == "edp");
  CHECK(experts->bytes.count() == 2 * 768 * 4);
  const std::int64_t rest = program.classes.front().parameters - 2 * 768;
  CHECK(joint_named(program, "gradients.c0")->bytes.count() == rest * 4);
}

TEST_CASE("ZeRO-1 shares the experts' state among their replicas, the rest among all") {
  Plan plan = expert_plan(1, 4, 2);
  plan.sharding.zero = Zero::one;
  const Program program = experts_program(plan);
  const std::int64_t rest = program.classes.front().parameters - 2 * 768;
  CHECK(program.classes.front().owned == (rest + 3) / 4 + 2 * 768 / 2);
  REQUIRE(joint_named(program, "experts.s0") != nullptr);
  CHECK(joint_named(program, "experts.s0")->bytes.count() == 2 * 768 * 2);
}

/// Unshards and reductions of the first class, in order: "gather experts of layer 0 (edp)".
std::vector<std::string> shard_traffic(const Program& program) {
  std::vector<std::string> found;
  for (const Instruction& each : program.classes.front().instructions) {
    if (each.op != Opcode::unshard && each.op != Opcode::reduce_gradient) continue;
    const JointCollective& joint = program.collectives[each.target];
    found.push_back((each.op == Opcode::unshard ? "gather " : "reduce ") + joint.name + " (" +
                    program.communicators[joint.communicator].name + ")");
  }
  return found;
}

// Four ranks, experts over two: each layer's 768 expert parameters of a rank are shared by two
// replicas, all else by four.
TEST_CASE("ZeRO-3 gathers a layer's experts from their replicas, right before the rest of it") {
  Plan plan = expert_plan(1, 4, 2);
  plan.sharding.zero = Zero::three;
  plan.sharding.bucket = Bytes{1};
  plan.sharding.prefetch = 0;
  plan.overlap.gradients = false;
  Model model = tiny_experts();
  model.embedding.tied = false;
  model.parameters = count_parameters(model);
  const Program program = experts_program(plan, model);
  const auto has = [](const std::string& layer) {
    return std::vector<std::string>{"gather experts of " + layer + " (edp)",
                                    "gather " + layer + " (dp)"};
  };
  const std::vector<std::string> traffic = shard_traffic(program);
  std::vector<std::string> due{"gather embedding (dp)"};
  for (const char* layer : {"layer 0", "layer 1"}) {
    for (const std::string& each : has(layer)) due.push_back(each);
  }
  due.insert(due.end(), {"gather head (dp)", "reduce gradients.c0.0 (dp)"});
  for (const auto& [layer, part] : {std::pair{"layer 1", ".c0.1"}, {"layer 0", ".c0.2"}}) {
    for (const std::string& each : has(layer)) due.push_back(each);
    due.push_back("reduce gradients" + std::string{part} + " (dp)");
    due.push_back("reduce experts' gradients" + std::string{part} + " (edp)");
  }
  due.insert(due.end(), {"gather embedding (dp)", "reduce gradients.c0.3 (dp)"});
  CHECK(traffic == due);

  // bf16 weights: 768 x 2 bytes; fp32 gradients: 768 x 4.
  CHECK(joint_named(program, "experts of layer 0")->bytes.count() == 768 * 2);
  CHECK(joint_named(program, "experts' gradients")->bytes.count() == 768 * 4);
  // A rank owns half of its experts and a quarter of every other unit, rounded up.
  std::int64_t owned = 2 * 768 / 2;
  for (const Unit& each : program.units) {
    if (each.view == MeshView::dense) owned += (each.elements + 3) / 4;
  }
  CHECK(program.classes.front().owned == owned);
  // At its peak one layer is whole, its experts and all else of it, next to what the rank owns.
  const std::int64_t layer = program.units[1].elements + 768;
  CHECK(memory_peaks(program)[0].by_kind[static_cast<std::size_t>(BufferKind::parameter)].count() ==
        2 * (owned + layer));
}

TEST_CASE("Experts that one rank alone has are neither gathered nor reduced") {
  Plan plan = expert_plan(1, 4, 4);
  plan.sharding.zero = Zero::three;
  const Program program = experts_program(plan);
  CHECK(joint_named(program, "experts") == nullptr);
  std::int64_t owned = 0;
  for (const Unit& each : program.units) {
    owned += each.view == MeshView::experts ? each.elements : (each.elements + 3) / 4;
  }
  CHECK(program.classes.front().owned == owned);
}

TEST_CASE("A layer whose experts were not gathered is found") {
  Plan plan = expert_plan(1, 4, 2);
  plan.sharding.zero = Zero::three;
  Program program = experts_program(plan);
  for (JointCollective& each : program.collectives) each.completes = false;
  CHECK_THROWS_WITH(check(program), Catch::Matchers::Contains("layer 0 runs without its weights"));
}

TEST_CASE("Fused permutations read and write rows once, others in passes") {
  // Two ranks of two experts each; 8 tokens of 16 bytes are 128 bytes, 2 copies of each 256 to
  // send; which experts were chosen and with what weights are 64 bytes each.
  const auto bytes_of = [](bool fused, Pass pass, std::string_view name) {
    Plan plan = expert_plan(1, 2, 2);
    plan.experts.permute_fusion = fused;
    const Program program = experts_program(plan);
    const Block& block = pass == Pass::forward ? forward_of(program) : backward_of(program);
    const Operation& op = named(block, name);
    CHECK(op.fused() == fused);
    return op.bytes.count();
  };
  CHECK(bytes_of(false, Pass::forward, "permute") == 2 * 256 + 64);
  CHECK(bytes_of(true, Pass::forward, "permute") == 256 + 128 + 64);
  CHECK(bytes_of(false, Pass::forward, "unpermute") == 9 * 256 + 128 + 128);
  CHECK(bytes_of(true, Pass::forward, "unpermute") == 256 + 128 + 128);
  CHECK(bytes_of(false, Pass::backward, "unpermute.backward") == 11 * 256 + 64);
  CHECK(bytes_of(true, Pass::backward, "unpermute.backward") == 2 * 256 + 128 + 64);
  CHECK(bytes_of(false, Pass::backward, "permute.backward") == 3 * 256 + 128 + 64);
  CHECK(bytes_of(true, Pass::backward, "permute.backward") == 256 + 128 + 64);
  // One kernel each way between the ranks' order and the experts', however it is written.
  CHECK(bytes_of(true, Pass::forward, "sort") == bytes_of(false, Pass::forward, "sort"));
}

TEST_CASE("Biases of experts pass over their rows again, expert by expert") {
  const Model model = changed(tiny_experts(), [](ModelDraft& draft) { draft.mlp.bias = true; });
  Plan plan = expert_plan(1, 2, 2);
  plan.experts.permute_fusion = true;
  const Program program = experts_program(plan, model);
  // 256 bytes of rows: 1 pass and 6, 2 passes and 8; the rest as without biases.
  CHECK(named(forward_of(program), "unpermute").bytes.count() == 7 * 256 + 128 + 128);
  CHECK(named(backward_of(program), "unpermute.backward").bytes.count() == 10 * 256 + 128 + 64);
}

TEST_CASE("Capacity pads every expert, imbalance is the busiest rank's") {
  // 16 rows of a rank over 4 experts are 4 each; 1.3 times as many are 6, rounded up.
  for (const bool padded : {true, false}) {
    Plan plan = expert_plan(1, 2, 2);
    (padded ? plan.experts.capacity : plan.experts.imbalance) = 1.3;
    const Program program = experts_program(plan);
    CHECK(named(forward_of(program), "experts.up").group_rows() ==
          std::vector<std::int64_t>{12, 12});
  }
}

TEST_CASE("Slots that hold no row take memory, and neither time nor traffic") {
  const Program even = experts_program(expert_plan(1, 2, 2));
  const auto compare = [&](const Plan& plan, std::int64_t rows, double share) {
    const Program roomy = experts_program(plan);
    for (const auto& [with, without] : {std::pair{forward_of(roomy), forward_of(even)},
                                        std::pair{backward_of(roomy), backward_of(even)}}) {
      REQUIRE(with.operations.size() == without.operations.size());
      for (std::size_t i = 0; i < with.operations.size(); ++i) {
        const Operation &one = with.operations[i], &other = without.operations[i];
        INFO(one.name);
        const bool experts = !one.group_rows().empty();
        CHECK(one.flops ==
              (experts ? Flops{std::llround(share * ratio(other.flops, Flops{1}))} : other.flops));
        if (share == 1) CHECK(one.bytes == other.bytes);
      }
    }
    CHECK(named(forward_of(roomy), "experts.up").group_rows() ==
          std::vector<std::int64_t>{rows, rows});
    CHECK(roomy.blocks.size() == even.blocks.size());
  };
  Plan plan = expert_plan(1, 2, 2);
  plan.experts.room = 4;  // 4 rows of each rank for each expert, of 2 ranks
  compare(plan, 32, 1);
  plan.experts.imbalance = 2;
  compare(plan, 32, 2);
  plan = expert_plan(1, 2, 2);
  plan.experts.capacity = 2;
  compare(plan, 16, 2);
  plan.experts.pad_to_capacity = false;
  compare(plan, 16, 1);
  plan.experts.capacity = 0.5;  // half of them are dropped
  compare(plan, 4, 0.5);
}

TEST_CASE("A model of dense layers and layers with experts has two kinds") {
  const Model model = changed(tiny_experts(), [](ModelDraft& draft) {
    draft.dense = dense_layers(draft.depth, 1, 1);
    draft.dense_width = 24;
    draft.experts.shared_width = 16;
  });
  const Program program = experts_program(expert_plan(1, 2, 2), model);
  CHECK(program.kind_of_layer.front() != program.kind_of_layer.back());
  CHECK(program.kinds[program.kind_of_layer.front()].name == "dense layer");
  const Program whole = experts_program(expert_plan(1, 1, 1), model);
  CHECK(whole.classes.front().parameters == model.parameters);
  // One layer alone has experts to reduce, and its shared expert is the layer's own.
  CHECK(program.kinds[program.kind_of_layer.front()].expert_parameters == 0);
  CHECK(program.kinds[program.kind_of_layer.back()].expert_parameters == 768);
}

TEST_CASE("Shared experts run while tokens travel where the plan says so") {
  const Model model =
      changed(tiny_experts(), [](ModelDraft& draft) { draft.experts.shared_width = 16; });
  for (const bool overlaps : {false, true}) {
    Plan plan = expert_plan(1, 2, 2);
    plan.experts.overlap = overlaps ? ExpertOverlap::shared : ExpertOverlap::none;
    const Program program = experts_program(plan, model);
    const Block& block = forward_of(program);
    const auto place = [&](std::string_view name) {
      return &named(block, name) - block.operations.data();
    };
    CHECK((place("shared.up") > place("dispatched.all_to_all")) == overlaps);
  }
}

TEST_CASE("Latent attention has the matrices of its paper and values of their own width") {
  const Model model = changed(tiny_experts(), [](ModelDraft& draft) {
    draft.attention.kv_heads = draft.attention.heads;
    draft.attention.head_dim = 6;
    draft.attention.value_dim = 4;
    draft.attention.latents = {.query_rank = 5, .kv_rank = 3, .rotary_dim = 2};
    draft.embedding.positions = Positions::rotary;
  });
  const Program program = experts_program(expert_plan(1, 1, 1), model);
  CHECK(program.classes.front().parameters == model.parameters);
  // Scores 2 s s d and context 2 s s v, on two heads, half of them causal: 2 x 2 x 64 x 10 / 2.
  Flops attention{};
  for (const Operation& op : forward_of(program).operations) {
    if (op.time_class == TimeClass::attention) attention += op.flops;
  }
  CHECK(attention.count() == 2 * 2 * 64 * 10);
  CHECK(forward_of(program).find("key_value_norm.out").has_value());
  // Joining heads moves bytes in the GPU's own memory: nothing crosses to its host.
  for (const Block& block : program.blocks) {
    for (const Operation& op : block.operations) CHECK(op.kind != OpKind::copy);
  }
}

TEST_CASE("What experts cannot be cut to is refused in words") {
  const Model model = tiny_experts();
  const auto first = [&](const Plan& plan) {
    const auto found = conflicts(plan, model, plan.gpus());
    return found.empty() ? std::string{} : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(first(expert_plan(1, 6, 3)) == "/expert: expert 3 does not divide the model's 4 experts");
  CHECK(first(expert_plan(1, 2, 4)) ==
        "/expert: expert 4 x expert_tensor 1 does not divide the 2 ranks of a stage");
  Plan whole_rows = expert_plan(2, 1, 1);
  whole_rows.sequence_parallel = false;
  CHECK(first(whole_rows) ==
        "/sequence: a model with experts and tensor above 1 needs sequence parallelism");
  Plan staged = expert_plan(2, 2, 4);
  staged.pipeline = 2;
  staged.experts.tensor = 1;
  staged.batch.global = 4;
  staged.rank_order = RankOrder::pipeline_first;
  CHECK(first(staged) ==
        "/rank_order: with pipeline before data, experts need as many ranks as tensor x context");
  staged.experts.ranks = 1;
  staged.experts.tensor = 0;  // cut as dense layers are: no groups of their own
  CHECK(first(staged).empty());
  Plan both = expert_plan(1, 2, 2);
  both.experts.capacity = 1;
  both.experts.imbalance = 2;
  CHECK(first(both) == "/imbalance: imbalance applies only to dropless routing (capacity 0)");
  both.experts.imbalance = 1;
  both.experts.room = 2;
  CHECK(first(both) == "/expert_room: expert_room applies only to dropless routing (capacity 0)");
  Plan adapted = expert_plan(1, 4, 2);
  adapted.sharding.zero = Zero::three;
  adapted.task = Task::lora;
  CHECK(first(adapted) ==
        "/zero: task lora with zero 3 is not simulated with experts over several ranks: their "
        "frozen weights would be gathered apart");
  Plan alone = expert_plan(1, 4, 4);
  alone.sharding.zero = Zero::three;
  alone.offload.state = Offload::parameters;
  CHECK(first(alone) == "/offload: offload parameters needs data-parallel replicas of the experts");
  const auto dense = conflicts(expert_plan(1, 2, 2), tiny_gpt(2), 2);
  REQUIRE(!dense.empty());
  CHECK(dense.front().problem == "expert 2 needs a model with experts");
}

/// Which passes of a stage hide their all-to-alls: capitals do, in the order of the list.
std::string hidden_passes(const Program& program, std::size_t stage) {
  std::string text;
  for (const Instruction& each : program.classes[stage].instructions) {
    if (each.op != Opcode::forward && each.op != Opcode::backward) continue;
    const bool forward = each.op == Opcode::forward;
    bool hides = false;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const Operation& op : program.blocks[run.block].operations)
        hides |= op.exchange().overlaps_micro_batch;
    }
    text += hides ? (forward ? 'F' : 'B') : (forward ? 'f' : 'b');
  }
  return text;
}

Program overlapped(const std::string& schedule, std::int64_t pipeline, std::int64_t micro_batches) {
  Model model = tiny_experts();
  model.layers.resize(4);
  Plan plan = expert_plan(1, 2, 2);
  plan.pipeline = pipeline;
  plan.stages.schedule = schedule;
  plan.batch.global = 2 * micro_batches;
  plan.experts.overlap = ExpertOverlap::micro_batches;
  return experts_program(plan, model);
}

TEST_CASE(
    "Passes hide their all-to-alls next to another micro-batch alone, not where there is none") {
  // One stage: the first forward and the last backward have no partner.
  CHECK(hidden_passes(overlapped("1f1b", 1, 3), 0) == "fBFBFb");
  CHECK(hidden_passes(overlapped("1f1b", 1, 1), 0) == "fb");
  // Two stages: the first fills with one forward more.
  CHECK(hidden_passes(overlapped("1f1b", 2, 3), 0) == "fFBFBb");
  CHECK(hidden_passes(overlapped("1f1b", 2, 3), 1) == "fBFBFb");
  // Here the last forward is followed by its own backward.
  CHECK(hidden_passes(overlapped("gpipe", 2, 3), 0) == "fffbbb");
}

TEST_CASE("DualPipe's pairs are of both directions of the pipeline") {
  // Stage 0 of two with four micro-batches of each direction: F0 F1, then pairs F0 B1, F1 B0 until
  // forwards end, and four backwards.
  CHECK(hidden_passes(overlapped("dualpipe", 2, 8), 0) == "ffFBFBFBFBFBFBbb");
}

TEST_CASE("All-to-alls that nothing is computed next to are paid in full") {
  const auto step = [](const char* overlap, const char* batch) {
    return predict(question("mixtral-8x7b", "dgx-h100 x 2",
                            std::string{"expert=8,micro_batch=1,seq_len=4096,data=16,"
                                        "expert_overlap="} +
                                overlap + ",global_batch=" + batch,
                            "megatron-bridge"))
        .step;
  };
  // Of one micro-batch nothing is hidden; of many all but one forward and one backward.
  CHECK(step("micro-batches", "16") == step("none", "16"));
  CHECK(step("micro-batches", "64") < step("none", "64"));
}

TEST_CASE("Layers of different imbalance are priced and held apart") {
  Model model = tiny_experts();
  Plan plan = expert_plan(1, 2, 2);
  plan.experts.imbalance = 1.5;
  plan.experts.layer_imbalance = {1, 2};
  const Program program = experts_program(plan, model);
  // 8 tokens of two copies over four experts: 4 rows of each from each rank, or 8.
  for (const auto& [layer, rows] : {std::pair{0, 4}, std::pair{1, 8}}) {
    const LayerKind& kind = program.kinds[program.kind_of_layer[static_cast<std::size_t>(layer)]];
    const Block& block = program.blocks[kind.forward];
    CHECK(block.operands[*block.find("experts.in")].uncut[1] == 2 * rows);
  }
  plan.experts.layer_imbalance = {};
  plan.experts.imbalance = 2;
  CHECK(experts_program(plan, model).kind_of_layer == std::vector<std::uint32_t>{0, 0});
}

Question sharded_mixtral(const std::string& plan) {
  return question("mixtral-8x7b", "dgx-h100 x 1",
                  "data=8,zero=3,global_batch=8,micro_batch=1,seq_len=4096," + plan, "generic");
}

// 8 experts on every rank. Up is gate and up, two GEMMs in a loop; the kernels of each are those of
// MixtralSparseMoeBlock.
TEST_CASE("Experts one by one are launched one by one") {
  const auto kernels = [](const std::string& how, const std::string& operation) {
    const Program program = lower(sharded_mixtral("expert_gemms=" + how));
    const LayerKind& kind = program.kind(ModelPart::layer);
    return int{named(program.blocks[kind.forward], operation).module.kernels};
  };
  CHECK(kernels("grouped", "experts.up") == 1);
  CHECK(kernels("sequential", "experts.up") == 8);
  CHECK(kernels("sequential", "experts.activation") == 8);
  CHECK(kernels("sequential", "permute") == 1);
  CHECK(kernels("loop", "experts.up") == 16);
  CHECK(kernels("loop", "experts.down") == 8);
  CHECK(kernels("loop", "experts.activation") == 16);
  CHECK(kernels("loop", "permute") == 32);
  CHECK(kernels("loop", "unpermute") == 24);
  const Program looping = lower(sharded_mixtral("expert_gemms=loop"));
  CHECK(named(looping.blocks[looping.kind(ModelPart::layer).forward], "permute").host_waits);
}

TEST_CASE("Experts one by one take longer than in one grouped GEMM, a loop longest") {
  const auto step = [](const std::string& how) {
    return predict(sharded_mixtral("expert_gemms=" + how)).step;
  };
  const Time grouped = step("grouped"), sequential = step("sequential"), loop = step("loop");
  CHECK(grouped < sequential);
  CHECK(sequential < loop);
  CHECK(step("grouped") == predict(sharded_mixtral("recompute=none")).step);
}

TEST_CASE("A loop over experts has all of them on each rank") {
  const auto found = conflicts(sharded_mixtral("expert=8,expert_gemms=loop"));
  REQUIRE(found.size() == 1);
  CHECK(found.front().pointer == "/plan/expert_gemms");
}

TEST_CASE("A loop over experts is not captured in a graph") {
  CHECK(conflicts(sharded_mixtral("expert_gemms=sequential,cuda_graphs=true")).empty());
  const auto found = conflicts(sharded_mixtral("expert_gemms=loop,cuda_graphs=true"));
  REQUIRE(found.size() == 1);
  CHECK(found.front().pointer == "/plan/cuda_graphs");
  CHECK(found.front().problem == "expert_gemms loop waits for the host, which a graph cannot");
}

}  // namespace
}  // namespace orrery::models
