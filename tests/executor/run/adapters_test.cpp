// Adapters next to frozen matrices.

#include <catch2/catch.hpp>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/run/refusals.hpp"
#include "models/program/memory.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::LoraTarget;
using models::Model;
using models::Plan;

Plan adapting(std::int64_t samples = 4) {
  Plan plan = small_plan(samples);
  plan.task = models::Task::lora;
  plan.adapters.rank = 2;
  plan.adapters.targets = {LoraTarget::qkv, LoraTarget::projection, LoraTarget::up,
                           LoraTarget::down};
  return plan;
}

Outcome adapted(const Model& model, const Plan& plan, Arithmetic arithmetic) {
  return run({.model = model, .plan = plan, .arithmetic = arithmetic, .steps = 3});
}

std::vector<Cut> adapted_cuts() {
  std::vector<Cut> all;
  for (const Model& model : {small_gpt(), small_llama()}) {
    const auto add = [&](const char* name, auto change) {
      all.push_back({std::string{name} + " of " + model.name, model, adapting()});
      change(all.back().plan);
    };
    add("tensor, sequence, data", [](Plan& p) {
      p.tensor = p.data = 2;
      p.sequence_parallel = true;
      p.sharding.zero = models::Zero::one;
    });
    add("2 stages, all recomputed, buckets", [](Plan& p) {
      p.pipeline = p.data = 2;
      p.recompute.kind = models::Recompute::full;
      p.sharding.bucket = Bytes{1};
    });
    add("ZeRO-2, a ring of 2", [](Plan& p) {
      p.data = p.context = 2;
      p.sharding.zero = models::Zero::two;
    });
    add("the host keeps activations", [](Plan& p) { p.offload.layers = 2; });
  }
  for (const Model& model : {small_gpt(), small_llama()}) {
    const bool gated = model.name == small_llama().name;
    const auto add = [&](const char* name, auto change) {
      all.push_back({std::string{name} + ", single matrices of " + model.name, model, adapting()});
      all.back().plan.adapters.targets = {LoraTarget::query,     LoraTarget::value,
                                          LoraTarget::up_part,   LoraTarget::down,
                                          LoraTarget::embedding, LoraTarget::head};
      if (gated) all.back().plan.adapters.targets.add(LoraTarget::gate_part);
      change(all.back().plan);
    };
    add("tensor, sequence, data", [](Plan& p) {
      p.tensor = p.data = 2;
      p.sequence_parallel = true;
      p.sharding.zero = models::Zero::one;
    });
    add("2 stages, all recomputed", [](Plan& p) {
      p.pipeline = p.data = 2;
      p.recompute.kind = models::Recompute::full;
    });
    add("a ring of 2", [](Plan& p) { p.context = 2; });
  }
  for (const Model& plain : {with_experts(small_gpt()), with_experts(small_llama())}) {
    for (const bool staged : {false, true}) {
      const Model model =
          changed(plain, [&](auto& draft) { draft.experts.shared_width = staged ? 8 : 0; });
      Cut shared{"experts of two ranks", model, adapting()};
      shared.plan.adapters.targets = {LoraTarget::qkv, LoraTarget::projection};  // none of experts
      shared.plan.data = shared.plan.experts.ranks = 2;
      shared.plan.pipeline = staged ? 2 : 1;
      shared.plan.sharding.zero = models::Zero::one;
      all.push_back(shared);
    }
  }
  return all;
}

TEST_CASE("Adapters of every cut are those of one rank") {
  for (const Cut& each : adapted_cuts()) {
    INFO(each.name);
    for (const Arithmetic arithmetic : {Arithmetic::ring, Arithmetic::real}) {
      Plan whole = adapting();
      whole.adapters.targets = each.plan.adapters.targets;
      const Outcome one = adapted(each.model, whole, arithmetic);
      const Outcome many = adapted(each.model, each.plan, arithmetic);
      for (const auto& [name, values] : one.parameters)
        CHECK(name.find("lora") != std::string::npos);
      if (arithmetic == Arithmetic::ring) {
        CHECK(same_bits(many.gradients, one.gradients));
        CHECK(same_bits(many.parameters, one.parameters));
        CHECK(many.steps[2].ring_loss == one.steps[2].ring_loss);
      } else {
        CHECK(distance(many.gradients, one.gradients) < 1e-12);
        CHECK(many.steps[2].loss == Approx(one.steps[2].loss).epsilon(1e-11));
      }
    }
  }
}

// A collective puts one rank's shard after the other's: of [T, rank] cut by columns that is no row.
TEST_CASE("Adapters whose rank is cut over the tensor group are refused, and others are not") {
  models::Software software = cpu_software();
  software.overlap.tensor_exposed = 0.3;
  const auto refused = [&](LoraTarget target) {
    Plan plan = adapting();
    plan.adapters.targets = {target};
    plan.tensor = 2;
    const models::Program program = lowered(small_gpt(), plan, software);
    return refusal(program, software, CpuDevice{Arithmetic::ring});
  };
  CHECK(refused(LoraTarget::qkv) ==
        "shards of rows that layer.forward/qkv.lora_middle.gather joins");
  CHECK(refused(LoraTarget::projection).empty());
}

TEST_CASE("An adapter of queries has the parameters of queries alone") {
  const Model model = small_llama();
  const auto parameters_of = [&](WordSet<LoraTarget> targets) {
    Plan plan = adapting();
    plan.adapters.targets = targets;
    return adapted(model, plan, Arithmetic::real).parameters;
  };
  std::int64_t queries = 0;
  for (const auto& [name, values] : parameters_of({LoraTarget::query})) {
    CHECK(name.find("qkv.q_proj.lora") != std::string::npos);
    queries += std::ssize(values);
  }
  // Two layers, rank 2: hidden columns in, those of queries out.
  CHECK(queries == 2 * 2 * (model.hidden + usual_attention(model).query_columns()));
}

TEST_CASE("Adapters alone are trained, and begin with a model that they do not change") {
  const Model model = small_llama();
  const Outcome own = adapted(model, adapting(), Arithmetic::real);
  const Outcome whole = adapted(model, small_plan(), Arithmetic::real);
  CHECK(own.steps[0].loss == whole.steps[0].loss);
  CHECK(own.steps[1].loss != whole.steps[1].loss);
  // 4 matrices in each of 2 layers, two of each: A moves from the second step on, B from the first.
  CHECK(own.parameters.size() == 16);
  for (const auto& [name, values] : own.gradients) {
    INFO(name);
    const bool b = name.find("lora_b") != std::string::npos;
    CHECK(b == std::any_of(values.begin(), values.end(), [](double g) { return g != 0; }));
  }
}

// Some ten products between an adapter and the loss, each off by the format's rounding.
TEST_CASE("Next to frozen matrices in few bits adapters learn as next to 16 bits") {
  const auto adapted_in = [](models::Precision precision, std::int64_t data) {
    Plan plan = adapting();
    plan.formats.precision = precision;
    plan.data = data;
    return adapted(small_llama(), plan, Arithmetic::real);
  };
  const Outcome wide = adapted_in(models::Precision::bf16, 1);
  for (const auto precision :
       {models::Precision::fp8, models::Precision::mxfp8, models::Precision::nvfp4}) {
    INFO(models::name(precision));
    const Outcome narrow = adapted_in(precision, 1);
    const double off = distance(narrow.gradients, wide.gradients);
    CHECK(off > 0.01);
    CHECK(off < (precision == models::Precision::nvfp4 ? 0.5 : 0.2));
    CHECK(narrow.steps[2].loss == Approx(wide.steps[2].loss).epsilon(5e-3));
    CHECK(distance(adapted_in(precision, 2).gradients, narrow.gradients) < 1e-5);
  }
}

TEST_CASE("Adapters written by one cut and read by another go on as if nothing had happened") {
  const Model model = small_gpt();
  Plan cut = adapting();
  cut.tensor = cut.pipeline = cut.data = 2;
  cut.sharding.zero = models::Zero::one;
  const Outcome through = adapted(model, adapting(), Arithmetic::ring);
  const Outcome begun =
      run({.model = model, .plan = cut, .arithmetic = Arithmetic::ring, .steps = 1});
  const models::Program program = lowered(model, adapting());
  CpuDevice device{Arithmetic::ring};
  ThreadWorld world{1};
  const auto fabric = world.fabric(0);
  RunSettings settings;
  settings.arithmetic = Arithmetic::ring;
  Runner runner{program, cpu_software(), device, *fabric, settings};
  go_on_from(begun, 1, runner);
  CHECK(runner.step(1).ring_loss == through.steps[1].ring_loss);
  CHECK(runner.step(2).ring_loss == through.steps[2].ring_loss);
}

TEST_CASE("Frozen matrices take the memory that is promised, in the format of the weights") {
  const Model model = changed(small_llama(4), [](auto& draft) {
    draft.hidden = 64;
    draft.mlp.width = 96;
    draft.attention.head_dim = 8;
  });
  for (const auto precision : {models::Precision::fp64, models::Precision::bf16}) {
    Plan plan = adapting();
    plan.formats.precision = precision;
    plan.tensor = 2;
    const models::Program program = lowered(model, plan);
    const Outcome out = run({.model = model, .plan = plan});
    const models::MemoryPeak promised = models::memory_peaks(program)[0];
    using models::BufferKind;
    for (const BufferKind kind :
         {BufferKind::parameter, BufferKind::gradient, BufferKind::optimizer}) {
      const auto at = static_cast<std::size_t>(kind);
      CHECK(out.memory[0].by_kind[at] == promised.by_kind[at]);
    }
    CHECK(static_cast<double>(out.memory[0].peak.count()) ==
          Approx(static_cast<double>(models::total(promised.by_kind).count())).epsilon(0.05));
  }
}

}  // namespace
}  // namespace orrery::executor
