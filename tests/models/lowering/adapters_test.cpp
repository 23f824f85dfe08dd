// Adapters next to frozen matrices: what is left of backward, of memory and of communication.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/conflicts.hpp"
#include "models/plan/derived.hpp"
#include "models/pricing/price.hpp"
#include "models/program/memory.hpp"
#include "models/program/memory_course.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Llama 3 8B: h 4096, 32 heads of 128, 8 of them for keys and values, MLP 14336, 32 layers.
/// Adapters of rank 16 on queries, keys and values (4096 -> 6144) and on the projection (4096 ->
/// 4096) have 16 (10240 + 8192) = 294,912 parameters a layer.
constexpr std::int64_t trained = 32 * 294'912;
constexpr std::int64_t all_parameters = 8'030'261'248;

Question llama(const std::string& plan) {
  return question("llama3-8b", "dgx-h100 x 1", "micro_batch=1,seq_len=1024," + plan, "generic");
}

Bytes persistent_bytes(const Program& program, const std::string& name) {
  Bytes sum{};
  for (const PersistentBuffer& each : program.classes.front().persistent) {
    if (each.name == name) sum += each.bytes;
  }
  return sum;
}

const Block& block_named(const Program& program, const std::string& name) {
  const auto found = std::find_if(program.blocks.begin(), program.blocks.end(),
                                  [&](const Block& each) { return each.name == name; });
  REQUIRE(found != program.blocks.end());
  return *found;
}

bool has_operation(const Block& block, const std::string& operation) {
  return std::any_of(block.operations.begin(), block.operations.end(),
                     [&](const Operation& each) { return each.name == operation; });
}

/// Of products alone.
std::int64_t product_flops(const Block& block) {
  Flops sum{};
  for (const Operation& each : block.operations) {
    if (each.kind == OpKind::gemm) sum += each.flops;
  }
  return sum.count();
}

TEST_CASE("Frozen matrices hold no gradient and no state, adapters hold both") {
  const Program program = lower(llama("task=lora,data=8,global_batch=8"));
  CHECK(program.classes.front().parameters == trained);
  CHECK(persistent_bytes(program, "parameters").count() == 2 * trained);
  CHECK(persistent_bytes(program, "gradients").count() == 4 * trained);
  CHECK(persistent_bytes(program, "optimizer").count() == 12 * trained);
  CHECK(persistent_bytes(program, "frozen_parameters").count() == 2 * all_parameters);
  std::int64_t reduced = 0;
  for (const JointCollective& each : program.collectives) reduced += each.elements;
  CHECK(reduced == trained);
}

TEST_CASE("Backward of a frozen matrix is its input gradient alone, an adapter's is both") {
  // 2 x 1024 tokens x parameters forward; the adapters' gradients are two products of that size.
  const Program program = lower(llama("task=lora,data=8,global_batch=8"));
  const std::int64_t matrices = 4096 * 6144 + 4096 * 4096 + 3 * 4096 * 14336;
  const Block& forward = block_named(program, "layer.forward");
  const Block& backward = block_named(program, "layer.backward");
  CHECK(product_flops(forward) == 2 * 1024 * (matrices + 294'912));
  CHECK(product_flops(backward) == 2 * 1024 * (matrices + 2 * 294'912));
  CHECK_FALSE(has_operation(backward, "qkv.wgrad"));
  CHECK(has_operation(backward, "qkv.lora_a.wgrad"));
  // The norm before the MLP is read by no weight gradient, the one before attention by A's.
  CHECK_FALSE(backward.find("norm2.out"));
  CHECK(backward.find("norm1.out"));
}

// 16 (4096 + 4096) of queries and 16 (4096 + 1024) of values, in 32 layers: the 6,815,744 trainable
// parameters that PEFT prints of Llama 3 8B with its default targets and rank 16.
TEST_CASE("Adapters of single matrices have what PEFT counts, and work on their columns alone") {
  const Program program =
      lower(llama("task=lora,lora_targets=q_proj:v_proj,data=8,global_batch=8"));
  CHECK(program.classes.front().parameters == 6'815'744);
  const Block& forward = block_named(program, "layer.forward");
  const auto operation = [&](const std::string& name) {
    const auto found = std::ranges::find(forward.operations, name, &Operation::name);
    REQUIRE(found != forward.operations.end());
    return *found;
  };
  // Columns: 4096 of queries, 1024 of keys, 1024 of values; 2 bytes, read twice, written once.
  CHECK(operation("qkv.q_proj.lora_add").first_column() == 0);
  CHECK(operation("qkv.v_proj.lora_add").first_column() == 4096 + 1024);
  CHECK(operation("qkv.v_proj.lora_add").bytes.count() == 3 * 2 * 1024 * 1024);
  CHECK(operation("qkv.v_proj.lora_b").gemm().n == 1024);
  CHECK_FALSE(has_operation(forward, "qkv.k_proj.lora_a"));
  check(program);
}

TEST_CASE("Adapters of all parts of a matrix count as PEFT counts them") {
  const auto trained_by = [](const std::string& targets) {
    return lower(llama("task=lora,data=8,global_batch=8,lora_targets=" + targets))
        .classes.front()
        .parameters;
  };
  // Three A's instead of one; gate and up alike.
  CHECK(trained_by("q_proj:k_proj:v_proj:o_proj") ==
        trained_by("qkv:projection") + 32 * 16 * 2 * 4096);
  CHECK(trained_by("gate_proj:up_proj:down_proj") == 32 * 16 * (3 * (4096 + 14336)));
  CHECK(trained_by("o_proj:embed_tokens") - trained_by("o_proj") == 16 * (128256 + 4096));
  CHECK(trained_by("o_proj:lm_head") - trained_by("o_proj") == 16 * (128256 + 4096));
}

TEST_CASE("Targets that a model or a plan does not have are refused by name") {
  const auto refused = [](const std::string& plan) {
    const auto found = conflicts(llama("data=8,global_batch=8," + plan));
    return found.empty() ? std::string{} : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(refused("task=lora,lora_targets=q_proj:k_proj").empty());
  CHECK(refused("task=lora,lora_targets=qkv:q_proj") ==
        "/plan/lora_targets: q_proj is a part of qkv");
  CHECK(refused("task=lora,lora_targets=lm_head").find("next to adapters of layers only") !=
        std::string::npos);
  CHECK(refused("task=lora,lora_targets=qkv:lm_head,fused_cross_entropy=true") ==
        "/plan/lora_targets: an adapter of lm_head is not simulated with fused_cross_entropy");
  // A product of [in, 8192] and [8192, out] is larger than the matrix of 4096 that it adapts.
  CHECK(refused("task=lora,lora_targets=qkv,lora_rank=8192") ==
        "/plan/lora_rank: 8192 is above the model's hidden size 4096; an adapter has fewer columns "
        "than the matrix that it adapts");
  CHECK(refused("task=lora,lora_targets=qkv,lora_rank=4096").empty());
  CHECK_THROWS_WITH(llama("lora_rank=8"),
                    Catch::Contains("/lora_rank: applies only to tasks lora and qlora"));
  CHECK_THROWS_WITH(llama("lora_targets=qkv"),
                    Catch::Contains("/lora_targets: applies only to tasks lora and qlora"));
}

TEST_CASE("An adapter of a layer cut by columns gathers its own input, and nothing hides that") {
  Question asked = llama("task=lora,lora_targets=qkv,lora_dropout=true,tensor=4,sequence=true");
  asked.software.overlap.tensor_exposed = 0.3;
  const Program program = lower(asked);
  const Block& forward = block_named(program, "layer.forward");
  const auto gathered = [&](const std::string& name) {
    const auto found = std::ranges::find(forward.operations, name, &Operation::name);
    REQUIRE(found != forward.operations.end());
    return *found;
  };
  const Operation own = gathered("qkv.lora_in.gather"), layer = gathered("norm1.out.gather");
  CHECK(own.module.adapter);
  CHECK_FALSE(layer.module.adapter);
  CHECK(own.bytes == layer.bytes);
  // A's 16 columns are cut over the 4 ranks.
  const auto a = std::ranges::find(forward.operations, "qkv.lora_a", &Operation::name);
  REQUIRE(a != forward.operations.end());
  CHECK(a->gemm().n == 4);
  check(program);
}

TEST_CASE("Where ZeRO-3 gathers an adapter's matrices alone, the host waits around each") {
  const auto waits = [](const std::string& plan, const std::string& block) {
    Question asked = llama("task=lora,data=8,global_batch=8," + plan);
    asked.software.host.sharded_adapter = 1_ms;
    const Program program = lower(asked);
    std::vector<std::string> names;
    for (const Operation& each : block_named(program, block).operations) {
      if (each.host_waits) names.push_back(each.name);
    }
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(waits("zero=3,lora_targets=projection", "layer.forward") ==
        Names{"projection", "projection.lora_a", "projection.lora_b"});
  CHECK(waits("zero=1", "layer.forward").empty());
}

TEST_CASE("Layers whose own unit is frozen keep their inputs' gradients until backward ends") {
  // 32 layers with 1024 tokens of 4096 numbers of 2 bytes between them. The lowest layer passes no
  // gradient on and needs less: the peak is in the one above it, when 30 have ended. What they
  // passed on is there, of which it reads one anyway.
  const Bytes between{std::int64_t{1024} * 4096 * 2};
  const auto peak = [](const std::string& plan, Time unit) {
    Question asked = llama("data=8,global_batch=8," + plan);
    asked.model.embedding.vocab = 2000;  // the peak is in a layer's backward, not at the loss
    asked.software.host.sharded_adapter = unit;
    const Program program = lower(asked);
    const Bytes most = total(memory_peaks(program).front().by_kind);
    Bytes in_course{};
    for (const MemoryAt& each : memory_course(program, 0)) {
      in_course = std::max(in_course, each.during);
    }
    CHECK(in_course == most);
    return most;
  };
  const auto kept = [&](const std::string& plan) { return peak(plan, 1_ms) - peak(plan, 0_ms); };
  CHECK(kept("task=lora,zero=3,recompute=full") == between * 29);
  CHECK(kept("task=lora,zero=3,recompute=none") == Bytes{});  // the nodes are no leaves
  CHECK(kept("task=lora,zero=1,recompute=full") == Bytes{});
  CHECK(kept("zero=3,recompute=full") == Bytes{});
}

TEST_CASE("A gathered matrix costs the host its time, once for each part of a fused layer") {
  Question asked = llama("task=lora,data=8,global_batch=8,zero=3");
  std::vector<std::string> assumptions;
  const auto launch = [&](Time unit, const std::string& name) {
    asked.software.host.sharded_adapter = unit;
    const Program program = lower(asked);
    const PricedProgram priced = price_program(program, asked.cluster, asked.software, assumptions);
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      for (std::size_t i = 0; i < program.blocks[b].operations.size(); ++i) {
        if (program.blocks[b].name != "layer.forward") continue;
        if (program.blocks[b].operations[i].name == name) return priced.blocks[b][i].launch;
      }
    }
    FAIL("no operation " << name);
    return Time{};
  };
  // Queries, keys and values have an adapter each; the projection is one matrix.
  CHECK(launch(1_ms, "qkv.lora_a") - launch(0_ms, "qkv.lora_a") == 3_ms);
  CHECK(launch(1_ms, "projection.lora_b") - launch(0_ms, "projection.lora_b") == 1_ms);
  CHECK(launch(1_ms, "qkv") == launch(0_ms, "qkv"));
}

TEST_CASE("Nothing below the first adapter has a gradient") {
  const Program both = lower(llama("task=lora,data=8,global_batch=8"));
  const Block& lowest = block_named(both, "lowest_layer.backward");
  CHECK(has_operation(lowest, "qkv.lora_a.wgrad"));
  CHECK_FALSE(has_operation(lowest, "qkv.dgrad"));
  CHECK_FALSE(has_operation(lowest, "norm1.backward"));
  CHECK(block_named(both, "embedding.backward").operations.empty());

  const Program projection =
      lower(llama("task=lora,lora_targets=projection,data=8,global_batch=8"));
  CHECK_FALSE(
      has_operation(block_named(projection, "lowest_layer.backward"), "attention.backward"));
  CHECK(has_operation(block_named(projection, "layer.backward"), "attention.backward"));
}

TEST_CASE("QLoRA stores a layer's matrices in 4 bits and makes them wide before each product") {
  // 218,103,808 of a layer in half a byte each, and a byte of scale for 64 of them; embedding,
  // head and norms stay in two bytes.
  const Program program = lower(llama("task=qlora,data=8,global_batch=8"));
  const std::int64_t matrices = 32 * std::int64_t{218'103'808};
  CHECK(persistent_bytes(program, "frozen_parameters").count() ==
        matrices / 2 + matrices / 64 + 2 * (all_parameters - matrices));
  const Block& forward = block_named(program, "layer.forward");
  const auto wide =
      std::find_if(forward.operations.begin(), forward.operations.end(),
                   [](const Operation& each) { return each.name == "projection.dequantise"; });
  REQUIRE(wide != forward.operations.end());
  // 4096 x 4096 numbers read in 4 bits with their scales, written in 16.
  CHECK(wide->bytes.count() == std::int64_t{4096} * 4096 / 64 * (32 + 1 + 128));
  CHECK(has_operation(block_named(program, "layer.backward"), "projection.dequantise"));
}

TEST_CASE("Frozen matrices take a byte a number where they are kept in 8 bits") {
  const Program program =
      lower(llama("task=lora,data=8,global_batch=8,precision=fp8,low_precision_gather=true"));
  const std::int64_t matrices = 32 * std::int64_t{218'103'808};
  CHECK(persistent_bytes(program, "frozen_parameters").count() ==
        matrices + 2 * (all_parameters - matrices));
}

TEST_CASE("Adapters are cut over tensor ranks as their matrices are, the narrow side is whole") {
  // A of queries, keys and values is whole, B is cut; of the projection the other way round.
  const Program program = lower(llama("task=lora,tensor=4,sequence=true,data=2,global_batch=2"));
  CHECK(program.classes.front().parameters == 32 * 16 * (4096 + 6144 / 4 + 4096 / 4 + 4096));
  check(program);
}

TEST_CASE("Latent attention's matrices have adapters as queries, keys and values do") {
  // DeepSeek V2, rank 16: queries 5120 -> 1536 -> 128 x 192, keys and values 5120 -> 512 + 64 and
  // 512 -> 128 x 256, projection 16384 -> 5120. 60 layers.
  const auto adapters = [](const std::string& targets) {
    const Program program = lower(
        question("deepseek-v2", "dgx-h100 x 1",
                 "data=8,expert=8,global_batch=8,seq_len=1024,task=lora,lora_targets=" + targets,
                 "generic"));
    check(program);
    return program.classes.front().parameters;
  };
  const std::int64_t latent = 5120 + 1536 + 1536 + 24'576 + 5120 + 576 + 512 + 32'768;
  CHECK(adapters("qkv") == 60 * 16 * latent);
  CHECK(adapters("qkv:projection") == 60 * 16 * (latent + 16'384 + 5120));
}

/// Mixtral 8x7B: 32 layers with 8 experts, h 4096, MLP 14336, router 4096 x 8, vocabulary 32000.
Program mixtral(const std::string& plan) {
  Program program = lower(
      question("mixtral-8x7b", "dgx-h100 x 1",
               "tensor=2,sequence=true,expert_tensor=1,data=4,global_batch=8,seq_len=1024," + plan,
               "generic"));
  check(program);
  return program;
}

TEST_CASE("Each expert has adapters of its own, reduced over the ranks that hold that expert") {
  // Rank 16, 4 of the 8 experts on each rank: 4096 -> 2 x 14336 and 14336 -> 4096.
  const std::int64_t experts = 32 * 4 * 16 * (4096 + 2 * 14'336 + 14'336 + 4096);
  const auto reduced = [](const Program& program) {
    std::int64_t sum = 0;
    for (const JointCollective& each : program.collectives) sum += each.elements;
    return sum;
  };
  const Program alone = mixtral("expert=2,task=lora,lora_targets=up:down");
  CHECK(alone.classes.front().parameters == experts);
  CHECK(reduced(alone) == experts);
  // Queries, keys and values: A is whole, B has half of 6144 columns.
  const Program both = mixtral("expert=2,task=lora,lora_targets=qkv:up:down");
  CHECK(both.classes.front().parameters == experts + 32 * 16 * (4096 + 3072));
  CHECK(reduced(both) == both.classes.front().parameters);
}

TEST_CASE(
    "Upcast next to 4-bit weights, norms, tables and what lies between matrices are in fp32") {
  const std::string plan = "task=qlora,data=8,global_batch=8";
  const Program narrow = lower(llama(plan)), wide = lower(llama(plan + ",kbit_upcast=true"));
  check(wide);
  const std::int64_t matrices = 32 * std::int64_t{218'103'808};
  CHECK(persistent_bytes(wide, "frozen_parameters") -
            persistent_bytes(narrow, "frozen_parameters") ==
        Bytes{2 * (all_parameters - matrices)});
  CHECK(persistent_bytes(wide, "optimizer") == persistent_bytes(narrow, "optimizer"));
  const auto named = [](const Program& program, const std::string& block, const std::string& name) {
    const Block& in = block_named(program, block);
    const auto found = std::ranges::find(in.operations, name, &Operation::name);
    REQUIRE(found != in.operations.end());
    return *found;
  };
  // [1024, 4096] read and written, and 4096 weights: twice the bytes. Products stay in 16 bits,
  // with a cast of their input and of their output.
  const std::int64_t rows = std::int64_t{1024} * 4096;
  CHECK(named(narrow, "layer.forward", "norm1").bytes == Bytes{2 * 2 * rows + 2 * 4096});
  CHECK(named(wide, "layer.forward", "norm1").bytes == Bytes{4 * 2 * rows + 4 * 4096});
  CHECK(named(wide, "layer.forward", "norm1.out.bf16").bytes == Bytes{(4 + 2) * rows});
  CHECK(named(wide, "layer.forward", "down.widen").bytes == Bytes{(2 + 4) * rows});
  CHECK(named(wide, "layer.forward", "down").dtype == hardware::DType::bf16);
  CHECK_FALSE(has_operation(block_named(narrow, "layer.forward"), "norm1.out.bf16"));
  // The head's weight is cast to 16 bits before its product; logits stay as they are.
  CHECK(has_operation(block_named(wide, "head.forward"), "head.weight.bf16"));
  CHECK_FALSE(has_operation(block_named(wide, "head.backward"), "head.weight.bf16"));
  CHECK(block_named(wide, "head.backward").bytes(Role::saved) -
            block_named(narrow, "head.backward").bytes(Role::saved) ==
        Bytes{2 * std::int64_t{128'256} * 4096 + 2 * rows});  // and the final norm's input
  CHECK(named(wide, "head.forward", "loss").bytes == named(narrow, "head.forward", "loss").bytes);
  // Longer, and more memory: a layer's input is kept in fp32 where it recomputes.
  const auto predicted = [&](const std::string& more) {
    return predict(llama(plan + ",recompute=full" + more));
  };
  const Prediction before = predicted(""), after = predicted(",kbit_upcast=true");
  CHECK(after.step > before.step);
  CHECK(after.memory[0].total - before.memory[0].total >
        Bytes{2 * (all_parameters - matrices) + 32 * 2 * rows});
}

TEST_CASE("Nothing is upcast where no weights are in 4 bits") {
  const auto refused = [](const std::string& plan) {
    const Question asked = llama(plan);
    const auto found = conflicts(asked.plan, asked.model, 8);
    return found.empty() ? "" : found.front().pointer + " " + found.front().problem;
  };
  CHECK(refused("task=lora,data=8,global_batch=8,kbit_upcast=true") ==
        "/kbit_upcast needs frozen weights in 4 bits, task qlora; task is lora");
  CHECK(refused("task=qlora,tensor=2,data=4,global_batch=8,kbit_upcast=true") ==
        "/kbit_upcast is not simulated with tensor above 1");
  CHECK(refused("task=qlora,data=8,global_batch=8,kbit_upcast=true").empty());
}

TEST_CASE("QLoRA stores experts in 4 bits, with adapters or without") {
  const std::int64_t cut = 32 * (std::int64_t{4096} * 6144 + 4096 * 4096) / 2;
  const std::int64_t matrices = cut + 32 * std::int64_t{2} * 3 * 4096 * 14'336;
  const std::int64_t wide = 32 * (std::int64_t{4096} * 8 + 2 * 4096) + 4096 + 32'000 * 4096;
  for (const std::string targets : {"qkv:projection", "qkv:up:down"}) {
    const Program program = mixtral("expert=4,task=qlora,lora_targets=" + targets);
    CHECK(persistent_bytes(program, "frozen_parameters").count() ==
          matrices / 2 + matrices / 64 + 2 * wide);
  }
}

TEST_CASE("Adapters of experts are refused where ranks share an expert") {
  const auto found = [](std::int64_t expert_tensor) {
    Question asked = question("mixtral-8x7b", "dgx-h100 x 1",
                              "tensor=2,sequence=true,data=4,global_batch=8,seq_len=1024,"
                              "task=lora,lora_targets=down",
                              "generic");
    asked.plan.experts.tensor = expert_tensor;
    return conflicts(asked.plan, asked.model, 8);
  };
  CHECK(found(1).empty());
  REQUIRE(found(2).size() == 1);
  CHECK(found(2).front().pointer == "/lora_targets");
}

TEST_CASE("A frozen reference goes forward and holds its weights, nothing more") {
  const Program plain = lower(llama("data=8,global_batch=8"));
  const Program dpo = lower(llama("task=dpo,data=8,global_batch=8"));
  const auto flops = [&](const Program& program, const std::string& name) {
    return block_named(program, name).flops().count();
  };
  CHECK(flops(dpo, "layer.forward") == 2 * flops(plain, "layer.forward"));
  CHECK(flops(dpo, "layer.backward") == flops(plain, "layer.backward"));
  CHECK(persistent_bytes(dpo, "frozen_parameters").count() == 2 * all_parameters);
  CHECK(persistent_bytes(dpo, "optimizer") == persistent_bytes(plain, "optimizer"));
  check(dpo);
}

TEST_CASE("A reference's activations go down the stages, no gradients of it come back") {
  const Program program = lower(llama("task=dpo,pipeline=4,data=2,global_batch=8"));
  check(program);
  // 1024 tokens x 4096 numbers in 16 bits.
  const std::int64_t activation = std::int64_t{1024} * 4096 * 2;
  for (const Channel& each : program.channels) {
    CHECK(each.bytes.count() == (each.forward ? 2 : 1) * activation);
  }
  const RankClass& second = program.classes[1];
  const auto bytes_of = [&](const RankClass& ranks, const std::string& name) {
    const auto found = std::find_if(ranks.types.begin(), ranks.types.end(),
                                    [&](const BufferType& each) { return each.name == name; });
    REQUIRE(found != ranks.types.end());
    return found->bytes.count();
  };
  CHECK(bytes_of(second, "out.c1") == 2 * activation);
  CHECK(bytes_of(second, "gradient_out.c1") == activation);
  const Program plain = lower(llama("pipeline=4,data=2,global_batch=8"));
  CHECK(bytes_of(second, "saved.c1") == bytes_of(plain.classes[1], "saved.c1") + activation);
}

TEST_CASE("Packed documents attend to themselves") {
  const auto attention = [](const std::string& plan) {
    for (const Operation& each : block_named(lower(llama(plan)), "layer.forward").operations) {
      if (each.kind == OpKind::attention) return each.flops.count();
    }
    return std::int64_t{0};
  };
  Question fused = llama("data=8,global_batch=8");
  CHECK(attended_length(fused.plan) == 1024);
  fused.plan.batch.documents = {256, 768};  // (256^2 + 768^2) / 1024
  CHECK(attended_length(fused.plan) == 640);
  const std::int64_t whole = attention("data=8,global_batch=8");
  CHECK(whole > 0);
  CHECK(attention("data=8,global_batch=8,sequence_lengths=256") == whole / 4);
}

TEST_CASE("Offloaded parameters include frozen ones, which come back for every gather") {
  const Program here = lower(llama("task=lora,zero=3,data=8,global_batch=8"));
  const Program there = lower(llama("task=lora,zero=3,data=8,global_batch=8,offload=parameters"));
  CHECK(persistent_bytes(here, "frozen_parameters").count() == 2 * all_parameters / 8);
  CHECK(persistent_bytes(there, "frozen_parameters").count() == 0);
  Bytes copied{};
  for (const JointCollective& each : there.collectives) copied = std::max(copied, each.from_host);
  // The head with the last norm, 128,257 x 4,096 in 16 bits, is the largest unit.
  CHECK(copied.count() == 2 * std::int64_t{128'257} * 4096 / 8);
}

}  // namespace
}  // namespace orrery::models
