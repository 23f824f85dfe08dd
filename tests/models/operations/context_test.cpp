// Ranks that share a sequence: what each sends and computes, by hand.

#include <catch2/catch.hpp>

#include "models/evaluation/events.hpp"
#include "models/operations/blocks.hpp"
#include "models/program/memory.hpp"
#include "tests/models/evaluation/operations.hpp"
#include "tests/models/ledger.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Llama 3.1 8B: 32 layers, h 4096, 32 heads and 8 key-value heads of 128, f 14336.
constexpr std::int64_t seq = 8192, hidden = 4096, keys = 8 * 128;

Plan plan_of(ContextForm form, std::int64_t ranks, std::int64_t heads = 1) {
  Plan plan;
  plan.context = ranks;
  plan.context_exchange.form = form;
  plan.context_exchange.heads = heads;
  plan.batch.seq_len = seq;
  return plan;
}

Program lowered(const Plan& plan) {
  const Model model = catalogue_model("llama3.1-8b");
  Software software = plain_software();
  software.kernels.attention["default"] = "flash-2";
  return lower(BlockInputs{model, plan, software, "hopper"});
}

const Block& layer(const Program& program, bool forward) {
  const LayerKind& kind = program.kind(ModelPart::layer);
  return program.blocks[forward ? kind.forward : kind.backward];
}

/// Payload of one kind of collective on the context lane.
std::int64_t sent_on_context(const Block& block, Collective kind) {
  Bytes sum{};
  for (const Operation& op : block.operations) {
    const bool counts = op.kind == OpKind::collective && op.collective() == kind;
    if (counts && op.queue == Lane::context) sum += op.bytes;
  }
  return sum.count();
}

Flops attention_of(const Block& block) {
  Flops sum{};
  for (const Operation& op : block.operations) {
    if (op.time_class == TimeClass::attention) sum += op.flops;
  }
  return sum;
}

std::int64_t activations(const Program& program) {
  const MemoryPeak peak = memory_peaks(program)[0];
  return peak.by_kind[static_cast<std::size_t>(BufferKind::activation)].count();
}

TEST_CASE("Keys and values go round a ring once forward, and with their gradients backward") {
  // 4 ranks of 2048 tokens: keys and values of 2 x 1024 columns in 2 bytes, 3 times; backward
  // twice.
  const Program program = lowered(plan_of(ContextForm::ring, 4));
  const std::int64_t own = 2048 * 2 * keys * 2;
  CHECK(sent_on_context(layer(program, true), Collective::send_receive) == 3 * own);
  CHECK(sent_on_context(layer(program, false), Collective::send_receive) == 2 * 3 * own);
}

TEST_CASE("Gathered keys and values are those of all ranks, and their gradients are scattered") {
  // nccl-tests count the gathered size: 8192 tokens, of which a rank receives three quarters.
  const Program program = lowered(plan_of(ContextForm::all_gather, 4));
  const std::int64_t all = 8192 * 2 * keys * 2;
  CHECK(sent_on_context(layer(program, true), Collective::all_gather) == all);
  CHECK(sent_on_context(layer(program, false), Collective::all_gather) == all);
  CHECK(sent_on_context(layer(program, false), Collective::reduce_scatter) == all);
}

TEST_CASE("Ulysses trades a rank's tokens for heads before attention and back after it") {
  // A rank's 2048 tokens of 4096 + 2 x 1024 columns there, of 4096 back; backward the same.
  const Program program = lowered(plan_of(ContextForm::ulysses, 4));
  const std::int64_t both = 2048 * (hidden + 2 * keys + hidden) * 2;
  CHECK(sent_on_context(layer(program, true), Collective::all_to_all) == both);
  CHECK(sent_on_context(layer(program, false), Collective::all_to_all) == both);
  CHECK(sent_on_context(layer(program, true), Collective::send_receive) == 0);
}

TEST_CASE("A hierarchy trades heads inside its groups, whose keys go round between them") {
  // 4 ranks in 2 groups: each has 4096 tokens of half the heads in attention.
  const Program program = lowered(plan_of(ContextForm::hierarchical, 4, 2));
  CHECK(sent_on_context(layer(program, true), Collective::all_to_all) ==
        2048 * (hidden + 2 * keys + hidden) * 2);
  CHECK(sent_on_context(layer(program, true), Collective::send_receive) == 4096 * keys * 2);
}

TEST_CASE("Each rank has its share of attention's and of the products' FLOPs, in every form") {
  const Program alone = lowered(plan_of(ContextForm::ring, 1));
  const Flops forward = attention_of(layer(alone, true)), back = attention_of(layer(alone, false));
  for (const ContextForm form : {ContextForm::ring, ContextForm::all_gather, ContextForm::ulysses,
                                 ContextForm::hierarchical}) {
    const Program shared = lowered(plan_of(form, 4, form == ContextForm::hierarchical ? 2 : 1));
    INFO(word_of(context_form_words, form));
    CHECK(attention_of(layer(shared, true)) * 4 == forward);
    CHECK(attention_of(layer(shared, false)) * 4 == back);
    CHECK(ledger_of(shared, 0).flops * 4 == ledger_of(alone, 0).flops);
    CHECK_NOTHROW(check(shared));
  }
}

TEST_CASE("Of contiguous pieces the last rank's attention is what all wait for") {
  // 2 - 1/4 times the average.
  const Program alone = lowered(plan_of(ContextForm::ring, 1));
  const Program last = lowered(plan_of(ContextForm::contiguous, 4));
  CHECK(attention_of(layer(last, true)).count() * 4 ==
        Approx(1.75 * attention_of(layer(alone, true)).count()));
  CHECK(sent_on_context(layer(last, true), Collective::all_gather) == 8192 * 2 * keys * 2);
  CHECK_NOTHROW(check(last));
}

TEST_CASE("Parameters are whole on every context rank, activations are shared") {
  const Program alone = lowered(plan_of(ContextForm::ring, 1));
  const Program shared = lowered(plan_of(ContextForm::ring, 4));
  CHECK(shared.classes[0].parameters == alone.classes[0].parameters);
  CHECK(activations(shared) * 4 == activations(alone));
  // Queries, keys and values by heads are kept next to the tokens' attention output.
  const Program traded = lowered(plan_of(ContextForm::ulysses, 4));
  CHECK(activations(traded) - activations(shared) == 32 * 2048 * hidden * 2);
}

TEST_CASE("Gradients are reduced over data and context together, and state is sharded there") {
  Plan plan = plan_of(ContextForm::ring, 2);
  plan.data = 4;
  plan.batch.global = 4;
  plan.sharding.zero = Zero::one;
  const Program program = lowered(plan);
  const AxisSet both{MeshAxis::context, MeshAxis::data};
  CHECK(program.units[1].replicated == both);
  CHECK(program.shards() == 8);
  CHECK(program.classes[0].owned * 8 >= program.classes[0].parameters);
  for (const JointCollective& each : program.collectives) {
    if (each.kind != Collective::reduce_scatter) continue;
    CHECK(program.communicators[each.communicator].axes == both);
  }
}

TEST_CASE("A transfer that attention outlasts costs nothing, and one that it does not shows") {
  // All but attention and transfers is free. 2 ranks: attention 2 x 1 s, and 2 x 3 s backward; one
  // pass of keys forward, one and one of gradients backward, which follows the first step.
  const Program program = lowered(plan_of(ContextForm::ring, 2));
  const auto step = [&](Time pass) {
    PricedProgram priced;
    priced.program = &program;
    for (const Block& block : program.blocks) {
      std::vector<PricedOperation>& prices = priced.blocks.emplace_back(block.operations.size());
      for (std::size_t i = 0; i < prices.size(); ++i) {
        const Operation& op = block.operations[i];
        if (op.queue == Lane::context) prices[i].duration = pass;
        if (op.kind == OpKind::attention) prices[i].duration = 1_s;
        if (op.kind == OpKind::attention_backward) prices[i].duration = 3_s;
      }
    }
    priced.collectives.resize(program.collectives.size());
    return evaluate_operations(priced).step;
  };
  CHECK(step(1_s) == 32 * 8_s);
  CHECK(step(2_s) == 32 * 9_s);  // forward waits 1 s for the keys
  // Forward 5 + 1; backward the keys arrive after 5, the gradients after 10, added at once.
  CHECK(step(5_s) == 32 * (6_s + 10_s));
}

TEST_CASE("A ring's hop is between neighbours, all of which send at once") {
  // On two nodes: neighbours inside a node and across the border; the border's hop is the slowest.
  const Question wide =
      question("llama3.1-8b", "dgx-h100 x 2", "context=16,global_batch=1,seq_len=131072", "nemo");
  const Question narrow =
      question("llama3.1-8b", "dgx-h100 x 1", "context=8,global_batch=1,seq_len=65536", "nemo");
  const auto hop = [](const Question& asked) {
    const Prediction found = predict(asked);
    for (std::size_t b = 0; b < found.program->blocks.size(); ++b) {
      for (std::size_t i = 0; i < found.program->blocks[b].operations.size(); ++i) {
        const Operation& op = found.program->blocks[b].operations[i];
        if (op.collective() == Collective::send_receive && op.queue == Lane::context) {
          return found.priced.blocks[b][i].duration;
        }
      }
    }
    throw ContractError{"no ring"};
  };
  // 8192 tokens x 2048 columns x 2 bytes, 33.6 MB: over 0.7 ms by a NIC of 50 GB/s, and by a
  // quarter of that over NVLink.
  CHECK(hop(wide) > 671_us);
  CHECK(hop(narrow) * 4 < hop(wide));
}

}  // namespace
}  // namespace orrery::models
