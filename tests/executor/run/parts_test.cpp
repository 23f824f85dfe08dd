// Parts of newer models: attention sinks, windows and chunks on some layers, gates, clamped
// activations, narrowed experts, Mamba-2 and the gated delta rule, norms of outputs,
// cross-attention. Every cut computes what one rank does, and faults show.

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::ContextForm;
using models::Model;
using models::OpKind;
using models::Plan;
using models::Zero;

/// Cuts that every one of these models has.
void add_common(std::vector<Cut>& all, const Model& model) {
  const auto add = [&](std::string name, auto change) {
    all.push_back(cut(name + " of " + model.name, model, change));
  };
  // Biases of experts are executed whole.
  const std::int64_t expert_tensor = models::usual_experts(model).mlp.bias ? 1 : 0;
  add("accumulation", [](Plan&) {});
  add("tensor 4, sequence", [&](Plan& p) {
    p.tensor = 4;
    p.sequence_parallel = true;
    p.experts.tensor = expert_tensor;
  });
  add("sequence, recomputation", [&](Plan& p) {
    p.tensor = 2;
    p.sequence_parallel = true;
    p.experts.tensor = expert_tensor;
    p.recompute.kind = models::Recompute::full;
  });
  add("attention recomputed, ZeRO-1", [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::one;
    p.sharding.bucket = Bytes{1};
    p.recompute.kind = models::Recompute::selective;
  });
  add("tensor, sequence, data, ZeRO-3", [&](Plan& p) {
    p.tensor = p.data = 2;
    p.sequence_parallel = true;
    p.experts.tensor = expert_tensor;
    p.sharding.zero = Zero::three;
  });
  if (crosses(model)) return;  // no pipeline
  add("zb-h1, tensor", [&](Plan& p) {
    p.pipeline = p.tensor = 2;
    p.sequence_parallel = true;
    p.experts.tensor = expert_tensor;
    p.stages.schedule = "zb-h1";
  });
  if (models::usual_experts(model).count == 0) return;
  add("replicas of experts", [](Plan& p) {
    p.data = p.experts.ranks = 2;
    p.sharding.zero = Zero::one;
  });
}

std::vector<Cut> recurrent_cuts() {
  std::vector<Cut> all;
  for (const Model& model : {small_delta(), small_mamba()}) add_common(all, model);
  return all;
}

/// Without recurrences, a context group may share sequences.
std::vector<Cut> attention_cuts() {
  std::vector<Cut> all;
  for (const Model& model : {small_gpt_oss(), small_chunked()}) add_common(all, model);
  // Windows are not simulated there.
  const Model whole = changed(small_gpt_oss(), [](models::ModelDraft& model) {
    model.name = "small-sinks";
    model.attention.window = 0;
  });
  for (const auto form : {ContextForm::all_gather, ContextForm::contiguous, ContextForm::ring}) {
    const std::string of{word_of(models::context_form_words, form)};
    all.push_back(cut(of + " with sinks", whole, [&](Plan& p) {
      p.context = 2;
      p.context_exchange.form = form;
      p.batch.micro = 2;
    }));
    all.push_back(cut(of + " of 4 ranks with sinks", whole, [&](Plan& p) {
      p.context = 4;
      p.context_exchange.form = form;
      p.recompute.kind = models::Recompute::selective;
    }));
  }
  return all;
}

/// Norms of outputs, and those of 1 + weight.
std::vector<Cut> norm_cuts() {
  std::vector<Cut> all;
  for (const Model& model : {small_gemma(), small_olmo()}) add_common(all, model);
  all.push_back(cut("norms recomputed of small-gemma", small_gemma(), [](Plan& p) {
    p.recompute.kind = models::Recompute::selective;
    p.recompute.modules = {models::RecomputeModule::layernorm};
  }));
  all.push_back(cut("a ring of small-olmo", small_olmo(), [](Plan& p) {
    p.context = 2;
    p.context_exchange.form = ContextForm::ring;
    p.batch.micro = 2;
  }));
  return all;
}

/// An encoder before the decoder: both sequences are cut alike.
std::vector<Cut> crossing_cuts() {
  std::vector<Cut> all;
  // One layer on each side is the first and the last of its side.
  const Model least = changed(small_both_sides(1), [](models::ModelDraft& model) {
    model.name = "least-both-sides";
    model.encoder->layers = 1;
  });
  for (const Model& model :
       {small_both_sides(3), small_bart(), least, with_experts(small_both_sides())}) {
    add_common(all, model);
  }
  all.push_back(cut("fewer keys and values, tensor",
                    changed(small_both_sides(),
                            [](models::ModelDraft& model) {
                              model.name = "grouped-both-sides";
                              model.attention.kv_heads = 2;
                            }),
                    [](Plan& p) { p.tensor = 2; }));
  all.push_back(cut("ZeRO-2 of small-bart", small_bart(), [](Plan& p) {
    p.data = 2;
    p.sharding.zero = Zero::two;
    p.batch.micro = 2;
  }));
  all.push_back(
      cut("half of the layers recomputed of small-both-sides", small_both_sides(), [](Plan& p) {
        p.recompute.kind = models::Recompute::full;
        p.recompute.every = 2;
      }));
  all.push_back(cut("offloaded activations of small-both-sides", small_both_sides(),
                    [](Plan& p) { p.offload.layers = 2; }));
  return all;
}

TEST_CASE("In the ring every cut of recurrences and gates gives the bits of one rank") {
  check_in_ring(recurrent_cuts());
}
TEST_CASE("In fp64 every cut of recurrences and gates gives what one rank does, to rounding") {
  check_in_fp64(recurrent_cuts());
}
TEST_CASE("In fp32 every cut of recurrences and gates gives what one rank does, to its rounding") {
  check_in_fp32(recurrent_cuts());
}
TEST_CASE("In the ring every cut of sinks, windows and chunks gives the bits of one rank") {
  check_in_ring(attention_cuts());
}
TEST_CASE("In fp64 every cut of sinks, windows and chunks gives what one rank does, to rounding") {
  check_in_fp64(attention_cuts());
}
TEST_CASE("In fp32 every cut of sinks, windows and chunks gives what one rank does") {
  check_in_fp32(attention_cuts());
}

TEST_CASE("In the ring every cut of norms of outputs gives the bits of one rank") {
  check_in_ring(norm_cuts());
}
TEST_CASE("In fp64 every cut of norms of outputs gives what one rank does, to rounding") {
  check_in_fp64(norm_cuts());
}
TEST_CASE("In fp32 every cut of norms of outputs gives what one rank does, to its rounding") {
  check_in_fp32(norm_cuts());
}

TEST_CASE("In the ring every cut of cross-attention gives the bits of one rank") {
  check_in_ring(crossing_cuts());
}
TEST_CASE("In fp64 every cut of cross-attention gives what one rank does, to rounding") {
  check_in_fp64(crossing_cuts());
}
TEST_CASE("In fp32 every cut of cross-attention gives what one rank does, to its rounding") {
  check_in_fp32(crossing_cuts());
}

// In 16 bits attention is one kernel, in 64 products per head: 8 bits of mantissa in some dozens of
// operations.
TEST_CASE("Newer parts in bf16 are as near to fp32 as others are") {
  for (const Model& model : {small_gpt_oss(), small_delta(), small_mamba(), small_chunked(),
                             small_gemma(), small_olmo(), small_both_sides(), small_bart()}) {
    INFO(model.name);
    Plan plan = small_plan();
    plan.formats.precision = models::Precision::fp32;
    const Outcome wide = run({.model = model, .plan = plan});
    plan.formats.precision = models::Precision::bf16;
    const Outcome narrow = run({.model = model, .plan = plan});
    CHECK(distance(narrow.gradients, wide.gradients) < 1e-1);
    CHECK(narrow.steps[0].loss == Approx(wide.steps[0].loss).epsilon(1e-3));
  }
}

/// How far gradients of a cut are from one rank's, without and with a kernel that is disturbed.
void check_shows(const Model& model, const std::function<void(Kernel&)>& disturb) {
  Plan plan = small_plan();
  const Outcome one = run({.model = model, .plan = plan});
  plan.tensor = 2;
  plan.sequence_parallel = true;
  if (models::usual_experts(model).mlp.bias) plan.experts.tensor = 1;
  CHECK(distance(run({.model = model, .plan = plan}).gradients, one.gradients) < 1e-12);
  const Outcome wrong = run({.model = model, .plan = plan, .disturb = disturb});
  CHECK(distance(wrong.gradients, one.gradients) > 1e-4);
}

TEST_CASE("A sink that is forgotten shows, and so does a recurrence that loses its past") {
  check_shows(small_gpt_oss(), [](Kernel& kernel) {
    if (kernel.operation->kind != OpKind::softmax || !kernel.operation->attention().sinks) return;
    const View& sinks = kernel.reads[1];
    std::fill_n(reinterpret_cast<double*>(sinks.data), sinks.elements(), -100.0);
  });
  const auto forget = [](Kernel& kernel) {
    if (kernel.operation->kind == OpKind::scan) kernel.place.sequence = 1;
  };
  check_shows(small_delta(), forget);
  check_shows(small_mamba(), forget);
}

TEST_CASE("An encoder's output that one layer does not read shows, and so does half a gradient") {
  const auto of_keys = [](const Kernel& kernel) {
    return kernel.operation->name == "cross.key_value.dgrad";
  };
  check_shows(small_both_sides(), [&](Kernel& kernel) {
    if (of_keys(kernel)) std::fill_n(reinterpret_cast<double*>(kernel.reads[0].data), 4, 0.1);
  });
  check_shows(small_bart(), [](Kernel& kernel) {
    if (kernel.operation->name != "cross.key_value") return;
    std::fill_n(reinterpret_cast<double*>(kernel.reads[0].data), 4, 0.0);
  });
}

TEST_CASE("A window as long as the sequence is none, and so is such a chunk") {
  const auto gradients = [](auto change) {
    return run({.model = changed(small_llama(), change), .plan = small_plan()}).gradients;
  };
  const Tensors whole = gradients([](models::ModelDraft&) {});
  CHECK(same_bits(gradients([](models::ModelDraft& m) { m.attention.window = 8; }), whole));
  CHECK(same_bits(gradients([](models::ModelDraft& m) { m.attention.chunk = 8; }), whole));
  CHECK_FALSE(same_bits(gradients([](models::ModelDraft& m) { m.attention.chunk = 4; }), whole));
}

TEST_CASE("What of newer parts is not executed is refused by name") {
  const auto why = [](const Model& model, auto change) {
    Plan plan = small_plan();
    change(plan);
    return lowered(model, plan).inexact_feature;
  };
  for (const Model& model : {small_gpt_oss(), small_delta(), small_mamba(), small_chunked(),
                             small_gemma(), small_olmo()}) {
    CHECK(why(model, [](Plan&) {}).empty());
  }
  const auto exchange = [](Plan& p) {
    p.context = 2;
    p.context_exchange.form = ContextForm::ulysses;
  };
  CHECK(why(small_gpt_oss(), exchange) ==
        "attention sinks of heads that ranks exchange for tokens");
  const Model gated =
      changed(small_llama(), [](models::ModelDraft& model) { model.attention.gated = true; });
  CHECK(why(gated, exchange) == "a gate of the output of heads that ranks exchange for tokens");
  CHECK(why(small_mamba(), [](Plan& p) {
          p.batch.documents = {3, 4};
        }) == "recurrences over packed documents");
  const Model ungated = changed(small_gpt(), [](models::ModelDraft& m) { m.mlp.clamped = true; });
  CHECK(why(ungated, [](Plan&) {}) == "a clamped activation without a gate");
  const Model biased =
      changed(small_olmo(), [](models::ModelDraft& m) { m.attention.output_bias = true; });
  CHECK(why(biased, [](Plan&) {}) == "a bias before a norm of the output");
}

}  // namespace
}  // namespace orrery::executor
