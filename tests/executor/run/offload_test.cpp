// State that the host keeps and updates. Cuts with it are among those of every parity test
// (tests/executor/cuts.cpp).

#include <catch2/catch.hpp>

#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Offload;
using models::Plan;
using models::Zero;

Plan offloading(Zero zero, Offload offload) {
  Plan plan = small_plan();
  plan.data = 2;
  plan.sharding.zero = zero;
  plan.offload.state = offload;
  return plan;
}

// Of n parameters on 2 ranks in fp64 the device keeps parameters and gradients, 16 n bytes, and the
// host masters and both moments of a half of them and room for its gradients and for what comes of
// them, 5 * 8 n / 2; with ZeRO-3 a half of parameters and of gradients, or of gradients alone.
TEST_CASE("What is offloaded lies in the host's memory and not on the device") {
  const auto memory = [](Zero zero, Offload offload) {
    Job job{.model = small_llama(), .plan = offloading(zero, offload)};
    job.plan.sharding.bucket = Bytes{0};
    return run(job).memory[0];
  };
  const auto held = [](const MeasuredMemory& memory, models::BufferKind kind) {
    return memory.by_kind[static_cast<std::size_t>(kind)].count();
  };
  const MeasuredMemory here = memory(Zero::one, Offload::none);
  const std::int64_t all = held(here, models::BufferKind::parameter);
  CHECK(here.host == Bytes{});
  CHECK(held(here, models::BufferKind::optimizer) == all);
  const MeasuredMemory there = memory(Zero::one, Offload::optimizer);
  CHECK(held(there, models::BufferKind::parameter) == all);
  CHECK(held(there, models::BufferKind::optimizer) == 0);
  CHECK(there.host == Bytes{5 * all / 2});
}

/// Parameters after three steps without an operation of the update.
Tensors without(const char* name) {
  Job job{.model = small_llama(),
          .plan = offloading(Zero::one, Offload::optimizer),
          .arithmetic = Arithmetic::ring,
          .steps = 3};
  job.tamper = [&](models::Program& program) {
    for (models::Block& block : program.blocks) {
      auto& list = block.operations;
      const auto gone = std::find_if(list.begin(), list.end(),
                                     [&](const models::Operation& op) { return op.name == name; });
      if (gone != list.end()) gone->kind = models::OpKind::squared_norm;
    }
  };
  return run(job).parameters;
}

TEST_CASE("Gradients that do not reach the host show, and weights that do not come back") {
  Job one{.model = small_llama(), .plan = small_plan(), .arithmetic = Arithmetic::ring, .steps = 3};
  const Tensors whole = run(one).parameters;
  CHECK(same_bits(without("nothing"), whole));
  CHECK_FALSE(same_bits(without("gradients.to_host"), whole));
  CHECK_FALSE(same_bits(without("parameters.to_device"), whole));
}

// Two layers, of which each keeps the same.
TEST_CASE("What the host keeps of activations lies in its memory, from forward to backward") {
  const auto memory = [](std::int64_t layers) {
    Job job{.model = small_llama(), .plan = small_plan()};
    job.plan.offload.layers = layers;
    return run(job).memory[0];
  };
  const auto kept = [](const MeasuredMemory& memory) {
    return memory.by_kind[static_cast<std::size_t>(models::BufferKind::activation)].count();
  };
  const MeasuredMemory none = memory(0), one = memory(1), both = memory(2);
  CHECK(none.host == Bytes{});
  CHECK(one.host > Bytes{});
  CHECK(both.host.count() == 2 * one.host.count());
  CHECK(kept(none) - kept(one) == one.host.count());
  CHECK(kept(one) - kept(both) == one.host.count());
}

TEST_CASE("Activations that leave or come back in another's place show") {
  const auto confusing = [](const std::string& name) {
    Job job{.model = small_gpt(), .plan = small_plan(), .arithmetic = Arithmetic::ring, .steps = 2};
    job.plan.offload.layers = 1;
    job.tamper = [&](models::Program& program) {
      for (models::Block& block : program.blocks) {
        for (models::Operation& op : block.operations) {
          std::vector<models::OperandId>& kept =
              op.pass == models::Pass::forward ? op.reads : op.writes;
          if (op.name == name) std::swap(kept.front(), kept.back());
        }
      }
    };
    return run(job).parameters;
  };
  Job one{.model = small_gpt(), .plan = small_plan(), .arithmetic = Arithmetic::ring, .steps = 2};
  const Tensors whole = run(one).parameters;
  CHECK(same_bits(confusing("nothing"), whole));
  CHECK_FALSE(same_bits(confusing("activations.to_host"), whole));
  CHECK_FALSE(same_bits(confusing("activations.to_device"), whole));
}

TEST_CASE("In a pipeline the host keeps no activations") {
  Job job{.model = small_gpt(), .plan = small_plan()};
  job.plan.pipeline = 2;
  job.plan.offload.layers = 1;
  CHECK(lowered(job.model, job.plan).inexact_feature == "offloaded activations in a pipeline");
}

}  // namespace
}  // namespace orrery::executor
