// The evaluations on Programs as plans are lowered to, with the catalogue's prices.

#include <catch2/catch.hpp>

#include "models/model/counts.hpp"
#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "models/program/check/check.hpp"
#include "tests/models/evaluation/operations.hpp"
#include "tests/models/evaluation/programs.hpp"
#include "tests/models/evaluation/random_model.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// A lowered Program on two DGX A100 (16 GPUs), priced.
Case lowered(const std::string& plan, const std::string& software) {
  const Question asked = question("gpt2", "dgx-a100-80gb x 2", plan, software);
  Case made;
  *made.program = lower(
      BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
  std::vector<std::string> assumptions;
  made.priced = price_program(*made.program, asked.cluster, asked.software, assumptions);
  return made;
}

TEST_CASE("Lowered plans mean the same to maps, operations, events and every rank on its own") {
  for (const char* software : {"megatron-lm", "pytorch-eager", "orrery-cpu"}) {
    for (const char* plan :
         {"tensor=1,pipeline=1,global_batch=32,seq_len=512",
          "tensor=1,pipeline=1,zero=1,global_batch=32,seq_len=512,bucket=25 MB",
          "tensor=1,pipeline=1,zero=2,global_batch=32,seq_len=512,bucket=25 MB",
          "tensor=2,pipeline=1,zero=3,sequence=true,global_batch=16,seq_len=512",
          "tensor=1,compression=top-k,global_batch=32,seq_len=512,bucket=25 MB",
          "tensor=1,compression=power-sgd,global_batch=32,seq_len=512,bucket=25 MB",
          "tensor=1,compression=int8,global_batch=32,seq_len=512,bucket=25 MB",
          "tensor=2,pipeline=2,compression=fp16,global_batch=32,seq_len=512",
          "tensor=2,pipeline=2,global_batch=32,seq_len=512",
          "task=lora,tensor=2,pipeline=2,global_batch=32,seq_len=512,bucket=1 MB",
          "task=lora,tensor=2,pipeline=1,zero=3,lora_targets=up:down,lora_dropout=true,"
          "recompute=full,global_batch=16,seq_len=512",
          "task=qlora,tensor=2,sequence=true,pipeline=4,global_batch=16,seq_len=512",
          "task=dpo,tensor=2,pipeline=1,zero=1,global_batch=16,seq_len=512",
          "task=dpo,tensor=2,pipeline=2,virtual_stages=2,zero=1,global_batch=16,seq_len=512",
          "task=dpo,pipeline=4,schedule=zb-h1,global_batch=16,seq_len=512",
          "tensor=2,pipeline=2,recompute=full,recompute_layers=4,recompute_every=3,moments=int8,"
          "global_batch=32,seq_len=512",
          "tensor=2,pipeline=2,zero=1,optimizer=muon,global_batch=32,seq_len=512",
          "tensor=2,sequence=true,pipeline=2,recompute=selective,"
          "recompute_modules=layernorm:activation:mlp,global_batch=32,seq_len=512",
          "tensor=2,pipeline=2,recompute=selective,recompute_layers=1,offload_layers=2,"
          "global_batch=32,seq_len=512",
          "tensor=2,pipeline=2,cuda_graphs=true,global_batch=32,seq_len=64",
          "context=4,pipeline=1,global_batch=16,seq_len=512",
          "context=4,context_form=all-gather,pipeline=2,zero=1,global_batch=16,seq_len=512",
          "tensor=2,context=2,context_form=ulysses,pipeline=1,recompute=full,global_batch=16,"
          "seq_len=512",
          "context=4,context_form=hierarchical,context_heads=2,pipeline=2,recompute=selective,"
          "global_batch=16,seq_len=512",
          "tensor=2,context=2,sequence=true,zero=3,global_batch=16,seq_len=512",
          "pipeline=2,zero=3,prefetch=2,data_shard=2,global_batch=16,seq_len=512",
          "zero=3,offload=parameters,global_batch=16,seq_len=512",
          "pipeline=2,virtual_stages=2,zero=2,global_batch=16,seq_len=512,bucket=25 MB",
          "tensor=2,pipeline=4,zero=1,schedule=gpipe,global_batch=16,seq_len=512",
          "tensor=2,pipeline=4,schedule=zb-h1,global_batch=16,seq_len=512",
          "tensor=2,pipeline=2,sequence=true,schedule=zb-h2,zero=1,global_batch=32,seq_len=512",
          "tensor=1,pipeline=4,recompute=full,schedule=zb-1p,global_batch=32,seq_len=512",
          "tensor=2,pipeline=4,virtual_stages=2,schedule=zb-v,global_batch=16,seq_len=512",
          "tensor=2,pipeline=2,virtual_stages=2,schedule=dualpipev,global_batch=32,seq_len=512",
          "tensor=2,pipeline=4,zero=1,schedule=dualpipe,global_batch=16,seq_len=512",
          "tensor=4,pipeline=4,sequence=true,recompute=full,global_batch=16,seq_len=512",
          "tensor=2,pipeline=4,virtual_stages=3,recompute=selective,global_batch=32,seq_len=512"}) {
      // Unfused attention does not share a sequence.
      const bool shares = std::string{plan}.find("context") != std::string::npos;
      if (shares && std::string{software} == "orrery-cpu") continue;
      const Case made = lowered(plan, software);
      const StepTimes events = evaluate_events(made.priced);
      INFO(software << " " << plan);
      CHECK(events.step > Time{});
      CHECK(difference(events, evaluate_operations(made.priced)) == "");
      CHECK(difference(events, evaluate_maps(made.priced)) == "");
      const Mesh& mesh = made.program->mesh;
      CHECK(difference(unfolded(events, mesh.stage_ranks()), evaluate_all_ranks(made.priced)) ==
            "");
    }
  }
}

/// The same of a model with experts, and with so many layers that predict further tokens.
Case lowered_experts(const std::string& plan, std::int64_t further) {
  Question asked = question("gpt2", "dgx-a100-80gb x 2", "tensor=1,global_batch=32,seq_len=64");
  asked.model = changed(asked.model, [&](ModelDraft& model) {
    model.experts.count = 16;
    model.experts.per_token = 2;
    model.experts.shared_width = 256;
    model.depth = 4;
    model.dense = dense_layers(4, 1, 1);
    model.dense_width = 512;
    model.mlp.width = 128;
    model.prediction_layers = further;
  });
  const Document document = Document::from(plan_from_text(plan), "plan");
  asked.plan = read_plan(document.root(), asked.model, asked.cluster.gpus(), asked.assumptions);
  for (const Conflict& each : conflicts(asked))
    FAIL(plan << ": " << each.pointer << " " << each.problem);
  Case made;
  *made.program = lower(
      BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
  check(*made.program);
  std::vector<std::string> assumptions;
  made.priced = price_program(*made.program, asked.cluster, asked.software, assumptions);
  return made;
}

TEST_CASE("Lowered plans with experts mean the same to all evaluations") {
  for (const char* plan :
       {"tensor=1,expert=1,global_batch=32,seq_len=64",
        "tensor=1,expert=8,zero=1,global_batch=32,seq_len=64",
        "tensor=1,expert=8,dispatcher=deepep,expert_overlap=shared,global_batch=16,seq_len=64",
        "tensor=2,sequence=true,pipeline=2,expert=4,expert_tensor=2,zero=1,global_batch=32,seq_len="
        "64",
        "tensor=4,sequence=true,expert=2,expert_tensor=1,global_batch=32,seq_len=64,recompute=full",
        "tensor=2,sequence=true,expert=2,expert_tensor=2,capacity=1.25,global_batch=16,seq_len=64",
        "tensor=2,sequence=true,pipeline=2,virtual_stages=2,expert=8,expert_tensor=1,zero=1,"
        "expert_overlap=micro-batches,global_batch=32,seq_len=64,bucket=1 MB",
        "tensor=1,expert=8,zero=2,global_batch=32,seq_len=64,bucket=1 MB",
        "tensor=1,expert=4,zero=3,global_batch=32,seq_len=64",
        "tensor=1,expert=16,expert_tensor=1,zero=3,global_batch=32,seq_len=64",
        "tensor=2,sequence=true,pipeline=2,expert=2,expert_tensor=1,zero=3,reshard=false,"
        "prefetch=2,global_batch=32,seq_len=64",
        "tensor=2,sequence=true,expert=2,expert_tensor=2,zero=3,global_batch=16,seq_len=64",
        "pipeline=2,schedule=dualpipe,expert=8,zero=1,expert_overlap=micro-batches,"
        "imbalance=1.5:1.2:1.1,global_batch=64,seq_len=64"}) {
    for (const std::int64_t further : {0, 2}) {
      const Case made = lowered_experts(plan, further);
      const StepTimes events = evaluate_events(made.priced);
      INFO(plan << ", " << further << " further tokens");
      CHECK(events.step > Time{});
      CHECK(difference(events, evaluate_operations(made.priced)) == "");
      CHECK(difference(events, evaluate_maps(made.priced)) == "");
      const Mesh& mesh = made.program->mesh;
      CHECK(difference(unfolded(events, mesh.stage_ranks()), evaluate_all_ranks(made.priced)) ==
            "");
    }
  }
}

/// Parameters that the first stage has in all its tensors, frozen ones included.
std::int64_t parameters_held(const Program& program) {
  std::int64_t sum = 0;
  const auto add = [&](const LayerKind& kind) {
    for (const Operand& each : program.blocks[kind.forward].operands) {
      if (each.role == Role::parameter && !each.tied()) sum += each.elements();
    }
  };
  add(program.kind(ModelPart::embedding));
  for (const std::uint32_t kind : program.kind_of_layer) add(program.kinds[kind]);
  add(program.kind(ModelPart::head));
  return sum;
}

TEST_CASE("Of random models of every part, plans mean the same to all evaluations") {
  const char* const plans[] = {
      "tensor=1,pipeline=1,global_batch=32,seq_len=64",
      "tensor=4,sequence=true,expert_tensor=1,pipeline=1,zero=1,global_batch=32,seq_len=64",
      "tensor=2,sequence=true,pipeline=2,zero=2,global_batch=32,seq_len=64,recompute=full",
      "tensor=2,sequence=true,pipeline=4,schedule=zb-h1,global_batch=32,seq_len=64",
      "tensor=1,pipeline=2,zero=3,recompute=selective,global_batch=32,seq_len=64",
      "tensor=1,pipeline=2,virtual_stages=2,expert=4,zero=1,global_batch=32,seq_len=64"};
  int evaluated = 0, crossing = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Question asked = question("gpt2", "dgx-a100-80gb x 2", "tensor=1,global_batch=32,seq_len=64");
    asked.model = random_model(seed);
    const std::string text = plans[seed % std::size(plans)];
    INFO("seed " << seed << ": " << text);
    const Document document = Document::from(plan_from_text(text), "plan");
    try {
      asked.plan = read_plan(document.root(), asked.model, asked.cluster.gpus(), asked.assumptions);
    } catch (const InputError&) {
      continue;  // experts are asked for and none are there
    }
    if (!conflicts(asked).empty()) continue;
    Case made;
    *made.program = lower(
        BlockInputs{asked.model, asked.plan, asked.software, asked.cluster.gpu().generation.name});
    check(*made.program);
    if (seed % std::size(plans) == 0) {
      CHECK(parameters_held(*made.program) == count_parameters(asked.model));
    }
    std::vector<std::string> assumptions;
    made.priced = price_program(*made.program, asked.cluster, asked.software, assumptions);
    const StepTimes events = evaluate_events(made.priced);
    CHECK(events.step > Time{});
    CHECK(difference(events, evaluate_operations(made.priced)) == "");
    CHECK(difference(events, evaluate_maps(made.priced)) == "");
    CHECK(difference(unfolded(events, made.program->mesh.stage_ranks()),
                     evaluate_all_ranks(made.priced)) == "");
    ++evaluated;
    crossing += crosses(asked.model) ? 1 : 0;
  }
  CHECK(evaluated >= 30);
  CHECK(crossing >= 4);
}

TEST_CASE("A slow GPU slows its kernels, not its host's update nor copies between the two") {
  for (const char* plan : {"zero=1,offload=optimizer,global_batch=16,seq_len=512",
                           "recompute=none,offload_layers=2,global_batch=16,seq_len=512"}) {
    const Case made = lowered(plan, "megatron-lm");
    const PricedProgram half = at_speed(made.priced, 0.5);
    int kernels = 0, others = 0;
    for (std::size_t b = 0; b < half.blocks.size(); ++b) {
      for (std::size_t i = 0; i < half.blocks[b].size(); ++i) {
        const Operation& op = made.program->blocks[b].operations[i];
        const Time before = made.priced.blocks[b][i].duration;
        const bool other = op.kind == OpKind::copy || op.queue != Lane::compute;
        ++(other ? others : kernels);
        INFO(plan << " " << op.name);
        CHECK(half.blocks[b][i].duration == (other ? before : before * 2));
      }
    }
    CHECK(kernels > 10);
    CHECK(others > 0);
  }
}

}  // namespace
}  // namespace orrery::models
