// Memory by hand: what recomputation by list keeps, which layers do it, and Adam's moments.

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/conflicts.hpp"
#include "models/prediction/flops.hpp"
#include "models/prediction/prediction.hpp"
#include "models/program/opcodes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

constexpr std::int64_t savers_tokens = 1024, savers_hidden = 4096, savers_mlp = 14336;

Program savers_program(const std::string& plan) {
  return lower(question("llama3-8b", "dgx-h100 x 1",
                        "data=8,global_batch=8,micro_batch=1,seq_len=1024," + plan, "generic"));
}

/// What backward of a layer of this kind finds.
std::int64_t kept_by(const Program& program, const std::string& kind) {
  for (const LayerKind& each : program.kinds) {
    if (each.name == kind) return program.blocks[each.backward].bytes(Role::saved).count();
  }
  return 0;
}

std::int64_t layer_saved(const std::string& plan) {
  return kept_by(savers_program(plan), "layer");
}

std::int64_t optimizer_bytes(const std::string& plan) {
  for (const PersistentBuffer& each : savers_program(plan).classes.front().persistent) {
    if (each.kind == BufferKind::optimizer) return each.bytes.count();
  }
  return 0;
}

TEST_CASE("16-bit weights that are their own masters leave two moments of 16 bits") {
  // Masters 4 and moments 8 bytes; pure: moments 4.
  const std::int64_t all = optimizer_bytes("zero=0");
  CHECK(optimizer_bytes("zero=0,state_precision=pure") == all / 3);
  CHECK(optimizer_bytes("zero=0,state_precision=pure,moments=int8") ==
        optimizer_bytes("zero=0,moments=int8") - all / 3);
  CHECK(optimizer_bytes("zero=0,state_precision=pure,precision=fp32") ==
        optimizer_bytes("zero=0,precision=fp32"));
}

TEST_CASE("A stated format of gradients is that of their buffer and of their reduction") {
  const auto bits_of = [](const std::string& plan) {
    return hardware::bits(savers_program("zero=0," + plan).formats.gradient);
  };
  CHECK(bits_of("gradient_dtype=stack") == 32);
  CHECK(bits_of("gradient_dtype=bf16") == 16);
  const Program narrow = savers_program("zero=0,gradient_dtype=bf16");
  const Program wide = savers_program("zero=0,gradient_dtype=fp32");
  const auto reduced = [](const Program& program) {
    Bytes sum{};
    for (const JointCollective& each : program.collectives) {
      if (each.elements > 0) sum += each.bytes;
    }
    return sum;
  };
  REQUIRE(reduced(narrow) > Bytes{});
  CHECK(reduced(wide) == reduced(narrow) * 2);
  CHECK_FALSE(
      conflicts(question("llama3-8b", "dgx-h100 x 1",
                         "data=8,global_batch=8,seq_len=64,precision=fp16,gradient_dtype=bf16"))
          .empty());
}

// Three numbers of 4 bytes for each parameter that a rank updates: a quarter of them on the host.
TEST_CASE(
    "A share of the optimizer on the host takes that share of its state there, in two updates") {
  const std::string some = "zero=1,offload=optimizer,optimizer_offload_fraction=0.25";
  const Program program = savers_program(some);
  const std::int64_t owned = program.classes.front().owned;
  CHECK(optimizer_bytes(some) == 12 * (owned - (owned + 3) / 4));
  CHECK(optimizer_bytes("zero=1,offload=optimizer") == 0);
  std::vector<std::string> updates;
  for (const Instruction& each : program.classes.front().instructions) {
    if (each.op != Opcode::optimizer) continue;
    for (const Invocation& run : program.phases[each.target].invocations) {
      for (const Operation& op : program.blocks[run.block].operations) {
        if (op.kind == OpKind::adam) updates.push_back(std::string{name(op.queue)});
      }
    }
  }
  CHECK(updates ==
        std::vector<std::string>{std::string{name(Lane::compute)}, std::string{name(Lane::host)}});
}

// The host updates as much less as it has; the GPU's own update of the rest is some milliseconds.
TEST_CASE("A smaller share on the host makes the step shorter, and more memory is needed") {
  const auto predicted = [](const std::string& plan) {
    return predict(question("llama3-8b", "dgx-h100 x 1",
                            "data=8,global_batch=8,micro_batch=1,seq_len=1024,zero=1," + plan,
                            "generic"));
  };
  const Prediction all = predicted("offload=optimizer"), none = predicted("offload=none");
  const Prediction half = predicted("offload=optimizer,optimizer_offload_fraction=0.5");
  CHECK(half.step < all.step);
  CHECK(none.step < half.step);
  CHECK(seconds(all.step - half.step) == Approx(0.5 * seconds(all.step - none.step)).epsilon(0.05));
  CHECK(half.memory[0].total > all.memory[0].total);
  CHECK(half.memory[0].total < none.memory[0].total);
}

// What does not fit crosses a link of 63 GB/s twice in each step.
TEST_CASE("A paged optimizer keeps on the host what does not fit, for the time of its copies") {
  const auto asked = [](Bytes memory, bool paged) {
    Question of = question("llama3-8b", "dgx-h100 x 1",
                           "data=8,global_batch=8,micro_batch=1,seq_len=1024,zero=1", "generic");
    of.plan.optimizer.paged = paged;
    of.cluster.node.gpu.memory = memory;
    return of;
  };
  const Prediction roomy = predict(asked(Bytes{400'000'000'000}, true));
  const Bytes needed = roomy.memory[0].total;
  CHECK(roomy.memory[0].paged == Bytes{});
  const Bytes missing{3'000'000'000};
  const Question narrow = asked(needed - missing, true);
  const Prediction paged = predict(narrow);
  CHECK(predict(asked(needed - missing, false)).out_of_memory);
  CHECK_FALSE(paged.out_of_memory);
  CHECK(paged.memory[0].paged == missing);
  CHECK(paged.memory[0].total == needed - missing);
  // What is needed is what stays on the GPU, of which a part is uncertain.
  CHECK(paged.memory[0].need.least <= paged.memory[0].total);
  CHECK(paged.memory[0].total <= paged.memory[0].need.most);
  CHECK(roomy.memory[0].need.least <= roomy.memory[0].total);
  CHECK(roomy.memory[0].total <= roomy.memory[0].need.most);
  CHECK(paged.step - roomy.step == missing * 2 / narrow.cluster.gpu().host_link);
  // Weights and activations are not paged.
  const auto state = roomy.memory[0].program[static_cast<std::size_t>(BufferKind::optimizer)];
  CHECK(predict(asked(needed - state - missing, true)).out_of_memory);
}

TEST_CASE("Transfers that the host waits for make a pipeline's step longer") {
  const auto step = [](const std::string& plan) {
    return predict(question("llama3-8b", "dgx-h100 x 1",
                            "pipeline=8,data=1,global_batch=16,micro_batch=1,seq_len=1024" + plan,
                            "generic"))
        .step;
  };
  CHECK(step(",overlap_p2p=true") == step(""));
  CHECK(step(",overlap_p2p=false") > step(""));
}

TEST_CASE("A plan whose transfers overlap does not wait for them on a stack that does") {
  const auto step = [](const std::string& plan) {
    return predict(question("llama3-8b", "dgx-h100 x 1",
                            "pipeline=8,data=1,global_batch=16,micro_batch=1,seq_len=1024" + plan,
                            "megatron-deepspeed"))
        .step;
  };
  CHECK(step(",overlap_p2p=false") == step(""));
  CHECK(step(",overlap_p2p=true") < step(""));
}

// A layer's MLP keeps its input of [1024, 4096] alone: gate, up and their product are gone.
TEST_CASE("Tiles of an MLP keep nothing but its input, and compute it again") {
  const std::int64_t whole = layer_saved("recompute=none"),
                     tiled = layer_saved("recompute=none,tiled_mlp=8");
  CHECK(whole - tiled == 3 * savers_tokens * savers_mlp * 2);
  const auto flops = [](const std::string& plan, bool backward) {
    const Program program = savers_program("recompute=none," + plan);
    const LayerKind& kind = program.kind(ModelPart::layer);
    return program.blocks[backward ? kind.backward : kind.forward].flops().count();
  };
  const double mlp = 2.0 * savers_tokens * 3 * savers_hidden * savers_mlp;
  CHECK(flops("tiled_mlp=8", false) == flops("tiled_mlp=1", false));
  CHECK(flops("tiled_mlp=8", true) == flops("tiled_mlp=1", true) + mlp);
  // Each tile launches its own kernels, and reads the weights again.
  const Program program = savers_program("recompute=none,tiled_mlp=8");
  const Block& forward = program.blocks[program.kind(ModelPart::layer).forward];
  const auto up = std::ranges::find(forward.operations, "up", &Operation::name);
  REQUIRE(up != forward.operations.end());
  CHECK(up->module.kernels == 8);
  CHECK(up->bytes.count() ==
        2 * (savers_tokens * savers_hidden + 8 * 2 * savers_hidden * savers_mlp +
             2 * savers_tokens * savers_mlp));
  // The peak of backward shrinks to an eighth of the MLP's temporaries, and the rest.
  const auto peak = [](const std::string& plan) {
    const Program of = savers_program("recompute=none," + plan);
    return of.blocks[of.kind(ModelPart::layer).backward].temporary_peak();
  };
  CHECK(peak("tiled_mlp=8") < peak("tiled_mlp=1"));
  const Question asked = question("llama3-8b", "dgx-h100 x 1",
                                  "data=8,global_batch=8,seq_len=1024,recompute=none,tiled_mlp=8");
  CHECK(recomputed_flops_per_token(asked.model, asked.plan) ==
        Approx(32 * 2.0 * 3 * savers_hidden * savers_mlp));
}

TEST_CASE("Each listed module drops what it makes again") {
  const std::int64_t none = layer_saved("recompute=none");
  // Two norms' outputs of [1024, 4096] in two bytes, though products read them.
  CHECK(none - layer_saved("recompute=selective,recompute_modules=layernorm") ==
        2 * savers_tokens * savers_hidden * 2);
  CHECK(none - layer_saved("recompute=selective,recompute_modules=activation") ==
        savers_tokens * savers_mlp * 2);
  // Gate and up, and their product; the norm's output before them is kept.
  CHECK(none - layer_saved("recompute=selective,recompute_modules=mlp") ==
        3 * savers_tokens * savers_mlp * 2);
  CHECK(none - layer_saved("recompute=selective,recompute_modules=layernorm:activation") ==
        2 * savers_tokens * savers_hidden * 2 + savers_tokens * savers_mlp * 2);
}

TEST_CASE("A norm of a part's output is not made again: no backward reads it") {
  Question asked = question("llama3-8b", "dgx-h100 x 1",
                            "data=8,global_batch=8,seq_len=1024,recompute=selective,"
                            "recompute_modules=layernorm",
                            "generic");
  asked.model.norms.sandwich = true;
  const Program program = lower(asked);
  std::vector<std::string> again;
  const Block& backward = program.blocks[program.kind(ModelPart::layer).backward];
  for (const Operation& op : backward.operations) {
    if (op.pass == Pass::recompute) again.push_back(op.name);
  }
  CHECK(again == std::vector<std::string>{"norm1.again", "norm2.again"});
}

TEST_CASE("In few bits the copies of recomputed outputs are dropped, too") {
  const std::int64_t none = layer_saved("precision=fp8,recompute=none");
  CHECK(none - layer_saved("precision=fp8,recompute=selective,recompute_modules=layernorm") ==
        2 * savers_tokens * savers_hidden);
}

TEST_CASE("A recomputed layer keeps its input, where backward reads only copies in few bits, too") {
  // BERT's layers have no norm before attention: GEMMs alone read x, [512, 1024] in two bytes.
  const Program program = lower(question("bert-large", "dgx-h100 x 1",
                                         "data=8,global_batch=8,micro_batch=1,seq_len=512,"
                                         "precision=fp8,recompute=full",
                                         "generic"));
  check(program);
  CHECK(kept_by(program, "layer") == std::int64_t{512} * 1024 * 2);
}

TEST_CASE("Recomputed products of latents keep latents alone, and multiply once more") {
  const auto asked = [](const std::string& plan) {
    return question("deepseek-v2", "dgx-h100 x 1",
                    "data=8,expert=8,global_batch=8,seq_len=1024," + plan, "generic");
  };
  const Question plain = asked("recompute=none");
  const Question again = asked("recompute=selective,recompute_modules=mla_up_proj");
  const Model& model = plain.model;
  const AttentionPart& attention = usual_attention(model);
  // Of every head a query and a key of head_dim and a value, in two bytes.
  const std::int64_t values = attention.value_width();
  const Program program = lower(again);
  check(program);
  CHECK(kept_by(lower(plain), "layer") - kept_by(program, "layer") ==
        savers_tokens * attention.heads * (2 * attention.head_dim + values) * 2);
  const std::int64_t rank = attention.latents->query_rank;
  const std::int64_t from = rank > 0 ? rank : model.hidden;
  const std::int64_t keys = attention.head_dim - attention.latents->rotary_dim + values;
  CHECK(recomputed_flops_per_token(model, again.plan) ==
        static_cast<double>(2 * model.layers.size() * attention.heads *
                            (from * attention.head_dim + attention.latents->kv_rank * keys)));
  CHECK(predict(again).step > predict(plain).step);
}

TEST_CASE("Of a model with experts the MLPs of its dense layers are recomputed, and no experts") {
  const Question asked =
      question("deepseek-v3", "dgx-h100 x 8",
               "pipeline=8,data=8,expert=8,global_batch=64,seq_len=1024,recompute=selective,"
               "recompute_modules=mlp",
               "generic");
  const Program program = lower(asked);
  check(program);
  for (const std::size_t layer : {0, 3}) {
    const Block& block = program.blocks[program.kinds[program.kind_of_layer[layer]].backward];
    const bool again = std::any_of(block.operations.begin(), block.operations.end(),
                                   [](const Operation& op) { return op.pass == Pass::recompute; });
    CHECK(again == (layer < 3));
  }
  // Three layers of 18,432 columns, gated.
  CHECK(recomputed_flops_per_token(asked.model, asked.plan) == 2.0 * 3 * 3 * 7168 * 18'432);
}

TEST_CASE("Recomputed experts send their rows once more, and multiply once more") {
  const auto asked = [](const std::string& modules) {
    return question("deepseek-v3", "dgx-h100 x 8",
                    "pipeline=8,data=8,expert=8,global_batch=64,seq_len=1024,recompute=selective,"
                    "recompute_modules=" +
                        modules,
                    "generic");
  };
  const Question again = asked("moe");
  const Program program = lower(again);
  check(program);
  const auto sent = [](const Program& of) {
    const Block& block = of.blocks[of.kinds[of.kind_of_layer.back()].backward];
    return std::ranges::count_if(block.operations, [](const Operation& op) {
      return op.collective() == Collective::all_to_all && op.kind == OpKind::collective;
    });
  };
  CHECK(sent(program) == 4);
  CHECK(sent(lower(asked("core_attn"))) == 2);
  // 58 layers: a router of 256 columns, and of 9 experts (one shared) three products each.
  CHECK(recomputed_flops_per_token(again.model, again.plan) ==
        58.0 * 2 * 7168 * (3 * 9 * 2048 + 256));
  CHECK(kept_by(program, "layer") < kept_by(lower(asked("core_attn")), "layer"));
}

TEST_CASE("An activation's input kept in 8 bits is half the bytes, and two casts") {
  const auto asked = [](const std::string& plan) {
    return question("llama3-8b", "dgx-h100 x 1", "data=8,seq_len=1024," + plan, "generic");
  };
  const Question narrow = asked("low_precision_activation=true");
  const Program plain = lower(asked("precision=bf16")), program = lower(narrow);
  check(program);
  // Gate and value, 2 x 14,336 columns: one byte instead of two.
  CHECK(kept_by(plain, "layer") - kept_by(program, "layer") == savers_tokens * 2 * savers_mlp);
  const auto casts = [](const Block& block) {
    std::int64_t bytes = 0;
    for (const Operation& op : block.operations) {
      if (op.kind == OpKind::quantise) bytes += op.bytes.count();
    }
    return bytes;
  };
  const LayerKind& kind = program.kinds[program.kind_of_layer.front()];
  CHECK(casts(program.blocks[kind.forward]) == savers_tokens * 2 * savers_mlp * (2 + 1));
  CHECK(casts(program.blocks[kind.backward]) == savers_tokens * 2 * savers_mlp * (1 + 2));
  CHECK(program.inexact_feature == "activation inputs kept in 8 bits");
  const auto first_problem = [](const Question& of) { return conflicts(of).front().problem; };
  CHECK(first_problem(question("gpt2", "dgx-h100 x 1", "low_precision_activation=true",
                               "generic")) == "needs a gated SiLU, which the model does not have");
  CHECK(first_problem(asked("low_precision_activation=true,recompute=selective,"
                            "recompute_modules=mlp")) ==
        "is not simulated where activations are recomputed");
  CHECK(first_problem(asked("low_precision_activation=true,recompute=full,recompute_layers=2,"
                            "recompute_elsewhere=mlp")) ==
        "is not simulated where activations are recomputed");
}

TEST_CASE("Latents whose products are recomputed in few bits are kept as they are stored") {
  for (const char* precision : {"fp8", "fp8-block", "mxfp8"}) {
    for (const char* modules : {"mla_up_proj", "layernorm:mla_up_proj", "core_attn:mla_up_proj"}) {
      const Question asked = question(
          "deepseek-v3", "dgx-b200 x 8",
          std::string{"pipeline=8,data=8,expert=8,global_batch=64,seq_len=1024,precision="} +
              precision + ",recompute=selective,recompute_modules=" + modules,
          "megatron-bridge");
      CHECK_NOTHROW(check(lower(asked)));
    }
  }
}

TEST_CASE("Recomputation hides no collective of backward, which waits for kernels before it") {
  const auto predicted = [](const std::string& recompute) {
    return predict(question("llama3-8b", "dgx-h100 x 1",
                            "tensor=8,sequence=true,micro_batch=7,global_batch=7,seq_len=4096,"
                            "recompute=" +
                                recompute,
                            "generic"));
  };
  const Prediction none = predicted("none"), selective = predicted("selective");
  const auto part = [](const Prediction& of, TimeClass which) {
    return seconds(of.breakdown[static_cast<std::size_t>(which)]);
  };
  CHECK(part(selective, TimeClass::tp) == Approx(part(none, TimeClass::tp)).epsilon(0.002));
  CHECK(seconds(selective.step - none.step) ==
        Approx(part(selective, TimeClass::attention) - part(none, TimeClass::attention))
            .epsilon(0.05));
}

TEST_CASE("A recomputed MLP multiplies once more") {
  const Question asked = question("llama3-8b", "dgx-h100 x 1",
                                  "data=8,recompute=selective,recompute_modules=mlp", "generic");
  CHECK(recomputed_flops_per_token(asked.model, asked.plan) ==
        2.0 * 32 * 3 * static_cast<double>(savers_hidden * savers_mlp));
}

TEST_CASE("The first layers of each chunk recompute, or every second of them") {
  const auto recomputing = [](const Program& program) {
    std::vector<std::size_t> layers;
    for (std::size_t i = 0; i < program.kind_of_layer.size(); ++i) {
      if (program.kinds[program.kind_of_layer[i]].recomputes) layers.push_back(i);
    }
    return layers;
  };
  const Program first = lower(question("llama3-8b", "dgx-h100 x 1",
                                       "tensor=4,pipeline=2,recompute=full,recompute_layers=3,"
                                       "recompute_every=2,global_batch=2,seq_len=1024",
                                       "generic"));
  CHECK(recomputing(first) == std::vector<std::size_t>{0, 2, 16, 18});
  check(first);
  const Program every = savers_program("recompute=full,recompute_every=16");
  CHECK(recomputing(every) == std::vector<std::size_t>{0, 16});
  // A layer that recomputes keeps its input alone.
  CHECK(kept_by(every, "recomputed layer") == savers_tokens * savers_hidden * 2);
  CHECK(kept_by(every, "layer") == layer_saved("recompute=none"));
}

// Of a stage's micro-batches in flight, as many as stated recompute the part; of 1F1B on 4 stages
// stage s has 4 - s in flight, so that of 8 micro-batches 2 of every 4 recompute all on stage 0,
// 1 of every 3 on stage 1, none on stages 2 and 3.
TEST_CASE("Of the micro-batches in flight some recompute in part, the others all layers") {
  const std::string plan =
      "pipeline=4,data=2,global_batch=16,micro_batch=1,seq_len=1024,recompute=full,";
  const auto asked = [&](const std::string& more) {
    return question("llama3-8b", "dgx-h100 x 1", plan + more, "generic");
  };
  const std::string some = "recompute_layers=2,partial_recompute_micro_batches=";
  const Program program = lower(asked(some + "2"));
  check(program);
  const auto of_stage = [&](std::size_t stage) {
    std::vector<std::uint32_t> all;
    for (const Instruction& each : program.classes[stage].instructions) {
      if (each.op == Opcode::forward && recomputes_all(program, program.classes[stage], each)) {
        all.push_back(each.micro_batch);
      }
    }
    return all;
  };
  CHECK(of_stage(0) == std::vector<std::uint32_t>{2, 3, 6, 7});
  CHECK(of_stage(1) == std::vector<std::uint32_t>{2, 5});
  CHECK(of_stage(2).empty());
  CHECK(of_stage(3).empty());
  // As many as there are in flight: as if nothing was stated. Fewer: longer, with less memory.
  const Prediction part = predict(asked("recompute_layers=2")), four = predict(asked(some + "4")),
                   two = predict(asked(some + "2")), all = predict(asked("recompute_layers=0"));
  CHECK(four.step == part.step);
  CHECK(four.memory[0].total == part.memory[0].total);
  CHECK(part.step < two.step);
  CHECK(two.step < all.step);
  CHECK(all.memory[0].total < two.memory[0].total);
  CHECK(two.memory[0].total < part.memory[0].total);
  // Two of four hold 2 + 0 of 8 layers' activations, two their inputs alone.
  const auto held = [&](const Prediction& of) {
    return of.memory[0].program[static_cast<std::size_t>(BufferKind::activation)].count();
  };
  CHECK(held(two) == (held(part) + held(all)) / 2);
  CHECK(two.recomputed_flops > part.recomputed_flops);
  CHECK(two.recomputed_flops < all.recomputed_flops);
}

TEST_CASE("Micro-batches recompute in part only in a pipeline, and where there is a part") {
  const auto refused = [](const std::string& plan) {
    const Question asked =
        question("llama3-8b", "dgx-h100 x 1",
                 plan + ",partial_recompute_micro_batches=1,seq_len=1024", "generic");
    const auto found = conflicts(asked.plan, asked.model, 8);
    return found.empty() ? "" : found.front().pointer + " " + found.front().problem;
  };
  const std::string field = "/partial_recompute_micro_batches ";
  CHECK(refused("pipeline=4,data=2,global_batch=16,recompute=full") ==
        field +
            "needs recompute_layers or recompute_every, the part that these micro-batches "
            "recompute");
  CHECK(refused("data=8,global_batch=8,recompute=full,recompute_layers=2") ==
        field + "has no effect: without a pipeline one micro-batch is in flight");
  CHECK(refused("pipeline=4,data=2,global_batch=16,recompute=full,recompute_layers=2").empty());
}

TEST_CASE("Layers that recomputation leaves out may run modules of their own again") {
  const Program program = savers_program(
      "recompute=selective,recompute_modules=layernorm:activation:mlp,recompute_every=2,"
      "recompute_elsewhere=layernorm:activation");
  check(program);
  CHECK(kept_by(program, "layer") ==
        layer_saved("recompute=selective,recompute_modules=layernorm:activation"));
  CHECK(kept_by(program, "recomputed layer") ==
        layer_saved("recompute=selective,recompute_modules=layernorm:activation:mlp"));
}

TEST_CASE("The first layers' activations wait on the host, and cross the link once each way") {
  const Program program = savers_program("offload_layers=3");
  check(program);
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < program.kind_of_layer.size(); ++i) {
    if (program.kinds[program.kind_of_layer[i]].offloads) layers.push_back(i);
  }
  CHECK(layers == std::vector<std::size_t>{0, 1, 2});
  CHECK(kept_by(program, "offloaded layer") == 0);
  CHECK(kept_by(program, "layer") == layer_saved("recompute=none"));
  const LayerKind& kind = program.kinds[program.kind_of_layer[0]];
  const Operation& there = program.blocks[kind.forward].operations.back();
  const Operation& back = program.blocks[kind.backward].operations.front();
  for (const Operation* const each : {&there, &back}) {
    CHECK(each->kind == OpKind::copy);
    CHECK(each->queue == Lane::copy);
    CHECK(each->bytes.count() == layer_saved("recompute=none"));
  }
  // It ends after the layer's last kernel, and the first kernel of backward that reads waits.
  CHECK_FALSE(there.after.empty());
  const auto& kernels = program.blocks[kind.backward].operations;
  CHECK(std::any_of(kernels.begin(), kernels.end(), [](const Operation& op) {
    return op.queue == Lane::compute &&
           std::find(op.after.begin(), op.after.end(), OpId{0}) != op.after.end();
  }));
}

TEST_CASE(
    "A link that is faster than the kernels hides offloaded activations, a slow one does not") {
  const auto step = [](const std::string& more, const char* link) {
    Question asked =
        question("llama3-8b", "dgx-h100 x 1", "data=8,zero=1,seq_len=8192" + more, "generic");
    asked.cluster.node.gpu.host_link = link == nullptr ? Bandwidth{1e15} : Bandwidth{1e9};
    return predict(asked).step;
  };
  CHECK(step(",offload_layers=8", nullptr) == step("", nullptr));
  // 8 layers, there and back, of each micro-batch.
  CHECK(step(",offload_layers=8", "slow") > step("", "slow"));
}

TEST_CASE("Moments in fewer bits take that much less, and 8 bits have scales") {
  const std::int64_t owned = 8'030'261'248;
  CHECK(optimizer_bytes("zero=0") == 12 * owned);
  CHECK(optimizer_bytes("zero=0,moments=bf16") == (4 + 2 + 2) * owned);
  // An fp32 scale for 256 numbers of each moment: 31,368,208 of them.
  CHECK(optimizer_bytes("zero=0,moments=int8") == (4 + 1 + 1) * owned + 2 * 4 * 31'368'208);
}

TEST_CASE("A fused cross-entropy keeps no logits and multiplies as much") {
  // fp32 exponentials of 128,256 tokens for each of 1024 rows, and what the norm made; instead the
  // gradient of what the head read.
  const Program plain = savers_program("zero=0");
  const Program fused = savers_program("zero=0,fused_cross_entropy=true");
  const auto products = [](const Program& program) {
    std::int64_t sum = 0;
    for (const LayerKind& kind : program.kinds) {
      if (kind.part != ModelPart::head) continue;
      for (const std::uint32_t block : {kind.forward, kind.backward}) {
        for (const Operation& each : program.blocks[block].operations) {
          if (each.kind == OpKind::gemm) sum += each.flops.count();
        }
      }
    }
    return sum;
  };
  CHECK(products(fused) == products(plain));
  CHECK(products(plain) == 3 * 2 * savers_tokens * savers_hidden * 128'256);
  const std::int64_t statistics = savers_tokens * 3 * 4;
  CHECK(kept_by(plain, "head") ==
        savers_tokens * 128'256 * 4 + statistics + 2 * savers_tokens * savers_hidden * 2);
  CHECK(kept_by(fused, "head") == 2 * savers_tokens * savers_hidden * 2);
  // 32 pieces of 32 rows: 1024 over ceil(128,256 / 4096).
  for (const Operand& each : fused.blocks[fused.kind(ModelPart::head).forward].operands) {
    if (each.name == "logits") CHECK(each.shape[1] == 32);
  }
  check(fused);
}

TEST_CASE("Recomputed layers without recomputation, and words that are not modules, are refused") {
  const auto refusal = [](const std::string& plan) {
    const Question asked = question("llama3-8b", "dgx-h100 x 1", plan, "generic");
    const std::vector<Conflict> found = conflicts(asked);
    return found.empty() ? "" : found.front().pointer + ": " + found.front().problem;
  };
  CHECK(refusal("recompute_layers=2") ==
        "/plan/recompute_layers: has no effect: recompute is none");
  CHECK(refusal("recompute=full,recompute_layers=33") ==
        "/plan/recompute_layers: the model has 32 layers");
  CHECK(refusal("recompute=selective,recompute_elsewhere=activation")
            .starts_with("/plan/recompute_elsewhere: "));
  CHECK(
      refusal("recompute=selective,recompute_modules=mla_up_proj") ==
      "/plan/recompute_modules: mla_up_proj needs latent attention, which the model does not have");
  CHECK(refusal("recompute=selective,recompute_modules=moe") ==
        "/plan/recompute_modules: moe needs experts, which the model does not have");
  CHECK(refusal("recompute=full,recompute_layers=1,recompute_elsewhere=moe") ==
        "/plan/recompute_elsewhere: moe needs experts, which the model does not have");
  CHECK(refusal("offload_device=nvme") ==
        "/plan/offload_device: offload_device nvme needs offload or offload_layers");
  CHECK(refusal("offload_layers=1,offload_device=nvme")
            .starts_with(
                "/plan/offload_device: offload_device nvme needs the read and write rates of the "
                "cluster's storage"));
  CHECK(refusal("end_layers_bf16=1") ==
        "/plan/end_layers_bf16: needs GEMMs in 8 or 4 bits; precision is bf16");
  CHECK(refusal("precision=fp8,start_layers_bf16=30,end_layers_bf16=3") ==
        "/plan/start_layers_bf16: 33 layers in bf16, the model has 32");
  CHECK(refusal("task=dpo,offload_layers=1").starts_with("/plan/offload_layers: "));
  CHECK_THROWS_WITH(refusal("recompute=selective,recompute_modules=heads"),
                    Catch::Contains("core_attn") && Catch::Contains("heads"));
}

}  // namespace
}  // namespace orrery::models
