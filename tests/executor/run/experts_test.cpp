// Mixtures of experts: every cut computes what one rank does, and routing is what it says. Slots
// are as many as any routing needs, so that no cut drops a token.

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/errors.hpp"
#include "executor/run/blocks/expert_rows.hpp"
#include "sim/input/document.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Model;
using models::OpKind;
using models::Plan;
using models::RowMove;
using models::Zero;

Model experts_gpt(std::int64_t layers = 2) {
  return with_experts(small_gpt(layers));
}
Model experts_llama(std::int64_t layers = 2) {
  return with_experts(small_llama(layers));
}

std::vector<Cut> expert_cuts() {
  std::vector<Cut> all;
  const auto add = [&](std::string name, const Model& model, auto change) {
    all.push_back(cut(std::move(name), model, change));
  };
  for (const Model& model : {experts_gpt(), experts_llama()}) {
    const std::string of = " of " + model.name;
    add("data" + of, model, [](Plan& p) { p.data = 2; });
    add("a rank for every expert" + of, model, [](Plan& p) { p.data = p.experts.ranks = 4; });
    add("experts, replicas, ZeRO-1" + of, model, [](Plan& p) {
      p.data = 4;
      p.experts.ranks = 2;
      p.sharding.zero = Zero::one;
      p.sharding.bucket = Bytes{1};
    });
    add("tensor ranks with all experts whole, ZeRO-1" + of, model, [](Plan& p) {
      p.tensor = 2;
      p.sequence_parallel = true;
      p.experts.tensor = 1;
      p.sharding.zero = Zero::one;
    });
    add("tensor ranks that share experts" + of, model, [](Plan& p) {
      p.tensor = p.experts.ranks = 2;
      p.sequence_parallel = true;
      p.experts.tensor = 1;
    });
    add("tensor and data ranks share experts, ZeRO-1, recomputation" + of, model, [](Plan& p) {
      p.tensor = p.data = 2;
      p.sequence_parallel = true;
      p.experts.ranks = 4;
      p.experts.tensor = 1;
      p.sharding.zero = Zero::one;
      p.recompute.kind = models::Recompute::full;
    });
    add("experts over ranks recomputed" + of, model, [](Plan& p) {
      p.data = p.experts.ranks = 2;
      p.recompute.kind = models::Recompute::selective;
      p.recompute.modules = {models::RecomputeModule::moe};
    });
    for (const Zero zero : {Zero::two, Zero::three}) {
      add("sharded gradients" + of, model, [&](Plan& p) {
        p.data = 2;
        p.sharding.zero = zero;
      });
      for (const std::int64_t ranks : {2, 4}) {
        const std::string holders = ranks == 2 ? "two ranks" : "one rank";
        add("sharded state, an expert on " + holders + of, model, [&](Plan& p) {
          p.data = 4;
          p.experts.ranks = ranks;
          p.sharding.zero = zero;
        });
      }
    }
    add("sharded weights, kept until backward, and experts over ranks" + of, model, [](Plan& p) {
      p.tensor = p.data = 2;
      p.sequence_parallel = true;
      p.experts.ranks = 2;
      p.experts.tensor = 1;
      p.sharding.zero = Zero::three;
      p.sharding.reshard = false;
      p.sharding.prefetch = 2;
    });
    add("sharded weights of two stages, and experts over ranks" + of, model, [](Plan& p) {
      p.pipeline = 2;
      p.data = 4;
      p.experts.ranks = 2;
      p.sharding.zero = Zero::three;
    });
  }
  const Model llama = experts_llama();
  add("experts cut by columns", llama, [](Plan& p) {
    p.tensor = 2;
    p.sequence_parallel = true;
  });
  add("experts cut and shared, and replicas", llama, [](Plan& p) {
    p.tensor = p.experts.ranks = 2;
    p.data = 4;
    p.sequence_parallel = true;
    p.sharding.zero = Zero::one;
  });
  add("experts cut over replicas of layers", llama, [](Plan& p) { p.data = p.experts.tensor = 2; });
  add("experts cut where layers are not", llama, [](Plan& p) {
    p.data = 4;
    p.experts.ranks = p.experts.tensor = 2;
  });
  for (const models::ContextForm form : {models::ContextForm::ring, models::ContextForm::ulysses}) {
    add("ranks that share sequences share experts, ZeRO-1", llama, [&](Plan& p) {
      p.context = p.data = 2;
      p.context_exchange.form = form;
      p.experts.ranks = 4;
      p.sharding.zero = Zero::one;
    });
    add("... and cut them", llama, [&](Plan& p) {
      p.context = p.tensor = p.experts.ranks = 2;
      p.sequence_parallel = true;
      p.context_exchange.form = form;
    });
  }
  const Model mixed = changed(experts_llama(4), [](models::ModelDraft& draft) {
    draft.name += "-mixed";
    draft.experts.shared_width = 8;
    draft.dense = models::dense_layers(draft.depth, 1, 1);
    draft.dense_width = 16;
  });
  add("a dense layer first, shared experts, 1f1b", mixed, [](Plan& p) {
    p.pipeline = p.data = p.experts.ranks = 2;
    p.sharding.zero = Zero::one;
    p.experts.overlap = models::ExpertOverlap::shared;
  });
  for (const char* schedule : {"zb-h1", "zb-v", "dualpipe"}) {
    add(schedule, mixed, [&](Plan& p) {
      p.pipeline = p.data = p.experts.ranks = 2;
      p.batch.global = 8;
      p.stages.virtual_stages = schedule == std::string{"zb-v"} ? 2 : 1;
      p.stages.schedule = schedule;
    });
  }
  return all;
}

TEST_CASE("In the ring every cut of experts gives the bits of one rank") {
  check_in_ring(expert_cuts());
}

TEST_CASE("In fp64 every cut of experts gives what one rank does, to rounding") {
  check_in_fp64(expert_cuts());
}

TEST_CASE("In fp32 every cut of experts gives what one rank does, to its rounding") {
  check_in_fp32(expert_cuts());
}

// 8 bits of mantissa round logits, too: of experts that are as good as equal a token may meet
// another one, which moves the loss of that token alone.
TEST_CASE("In bf16 a cut of experts learns as fp32 does") {
  const Cut whole =
      cut("", experts_llama(), [](Plan& p) { p.formats.precision = models::Precision::fp32; });
  const Outcome& wide = reference(whole, Arithmetic::real);
  for (const std::int64_t expert : {1, 2}) {
    Plan plan = small_plan();
    plan.formats.precision = models::Precision::bf16;
    plan.tensor = 2;
    plan.sequence_parallel = true;
    plan.data = plan.experts.ranks = expert;
    const Outcome narrow = run({.model = whole.model, .plan = plan, .steps = 3});
    for (std::size_t step = 0; step < 3; ++step) {
      CHECK(narrow.steps[step].loss == Approx(wide.steps[step].loss).epsilon(2e-3));
      CHECK(narrow.steps[step].gradient_norm ==
            Approx(wide.steps[step].gradient_norm).epsilon(5e-2));
    }
  }
}

/// Parameters by a formula; one of them moved.
class Moved final : public ParameterSource {
 public:
  Moved(std::string tensor, std::int64_t element, double by)
      : tensor_{std::move(tensor)}, element_{element}, by_{by} {}
  void require(const std::vector<StateTensor>&) override {}
  void fill(const StateTensor& tensor, std::int64_t first, std::span<double> to) const override {
    const bool norm = tensor.name.find("norm") != std::string::npos;
    for (std::size_t i = 0; i < to.size(); ++i) {
      const std::int64_t at = first + static_cast<std::int64_t>(i);
      const double phase = static_cast<double>(tensor.name.size()) + 0.7 * static_cast<double>(at);
      to[i] = (norm ? 1 : 0) + 0.3 * std::sin(phase * phase);
      if (tensor.name == tensor_ && at == element_) to[i] += by_;
    }
  }

 private:
  std::string tensor_;
  std::int64_t element_;
  double by_;
};

Outcome from(Moved initial, const Plan& plan) {
  Job job{.model = experts_gpt(), .plan = plan};
  job.settings.initial = &initial;
  return run(job);
}

// Central differences of a smooth loss are off by the square of the step, 1e-10, and by rounding,
// 1e-16 / 1e-5; gradients here are about 1e-2.
TEST_CASE("Gradients of router and experts are those of the loss, also where tokens are dropped") {
  constexpr double step = 1e-5;
  for (const double capacity : {0.0, 0.75}) {
    Plan plan = small_plan();
    if (capacity > 0) plan.experts.imbalance = 1;
    plan.experts.capacity = capacity;
    const Outcome here = from({"", 0, 0}, plan);
    for (const char* tensor : {"router.weight", "experts.up.weight", "experts.up.bias",
                               "experts.down.weight", "experts.down.bias", "norm2.weight"}) {
      for (const std::int64_t element : {3, 13}) {
        const std::string name = std::string{"layer0."} + tensor;
        INFO(name << " " << element << ", capacity " << capacity);
        const double more = from({name, element, step}, plan).steps[0].loss;
        const double less = from({name, element, -step}, plan).steps[0].loss;
        const double gradient = here.gradients.at(name)[static_cast<std::size_t>(element)];
        CHECK(gradient == Approx((more - less) / (2 * step)).epsilon(1e-5).margin(1e-9));
      }
    }
  }
}

// 4 experts, 2 of them for each of 32 tokens: 16 rows each if they were even. Every token chooses
// experts 0 and 1 where all logits are equal: 32 rows, twice as many.
TEST_CASE("Dropless routing that needs more slots than there are says how much room it needs") {
  Plan plan = small_plan();
  plan.batch.micro = 4;
  plan.experts.imbalance = 1.5;
  Job job{.model = experts_llama(), .plan = plan, .disturb = [](Kernel& kernel) {
            if (kernel.operation->kind != OpKind::route) return;
            const View& logits = kernel.reads[0];
            std::fill_n(reinterpret_cast<double*>(logits.data), logits.elements(), 0.0);
          }};
  CHECK_THROWS_WITH(
      run(job),
      "a rank routes 32 of its 64 rows to expert 0, but the plan has room for 24: set expert_room "
      "to at least 2.00, or set capacity, which drops the rows beyond it");
  job.plan.experts.imbalance = 2;
  CHECK_NOTHROW(run(job));
}

TEST_CASE("A token that is sent to the wrong expert shows") {
  Plan plan = small_plan();
  const Outcome one = run({.model = experts_llama(), .plan = plan});
  plan.data = plan.experts.ranks = 2;
  const auto swapped = [](Kernel& kernel) {
    if (kernel.operation->moves() != RowMove::dispatch) return;
    auto* const chosen = reinterpret_cast<std::int32_t*>(kernel.reads[1].data);
    chosen[0] = (chosen[0] + 1) % 4 == chosen[1] ? (chosen[0] + 2) % 4 : (chosen[0] + 1) % 4;
  };
  const Outcome right = run({.model = experts_llama(), .plan = plan});
  const Outcome wrong = run({.model = experts_llama(), .plan = plan, .disturb = swapped});
  CHECK(distance(right.gradients, one.gradients) < 1e-12);
  CHECK(distance(wrong.gradients, one.gradients) > 1e-3);
}

TEST_CASE("An all-to-all that is missing shows, there and back") {
  Plan plan = small_plan();
  const auto ring = [&](std::function<void(models::Program&)> tamper) {
    return run({.model = experts_llama(),
                .plan = plan,
                .arithmetic = Arithmetic::ring,
                .tamper = std::move(tamper)});
  };
  const Outcome one = ring({});
  plan.data = plan.experts.ranks = 2;
  CHECK(same_bits(ring({}).gradients, one.gradients));
  // Each rank keeps its own rows: what the collective reads becomes what it writes.
  const auto skip = [&](const char* block, const char* writer) {
    return ring([=](models::Program& program) {
      int skipped = 0;
      for (models::Block& each : program.blocks) {
        if (each.name != block) continue;
        for (models::Operation& op : each.operations) {
          const bool all_to_all = op.collective() == models::Collective::all_to_all;
          if (op.kind != OpKind::collective || !all_to_all) continue;
          if (each.operands[op.reads[0]].name.rfind(writer, 0) != 0) continue;
          op.kind = OpKind::cast;
          op.queue = models::Lane::compute;
          ++skipped;
        }
      }
      REQUIRE(skipped == 1);
    });
  };
  CHECK_FALSE(same_bits(skip("layer.forward", "dispatched").gradients, one.gradients));
  CHECK_FALSE(same_bits(skip("layer.forward", "returned").gradients, one.gradients));
  CHECK_FALSE(same_bits(skip("layer.backward", "returned.grad").gradients, one.gradients));
  CHECK_FALSE(same_bits(skip("layer.backward", "dispatched.grad").gradients, one.gradients));
}

// Where all logits are equal every token chooses experts 0 and 1, both of them rank 0's. Each rank
// has 2 micro-batches of 8 tokens and 2 layers: rank 1 sends 16 rows there in forward and as many
// in backward, rank 0 as many back, and nothing else crosses. 4 all-to-alls of a layer and a
// micro-batch have 2 experts' slots each, of which there are as many as tokens; with half of the
// mean, 2.
TEST_CASE("All-to-alls carry the rows that routing says, not the slots") {
  Plan plan = small_plan();
  plan.data = plan.experts.ranks = 2;
  Job job{.model = experts_llama(), .plan = plan, .disturb = [](Kernel& kernel) {
            if (kernel.operation->kind != OpKind::route) return;
            const View& logits = kernel.reads[0];
            std::fill_n(reinterpret_cast<double*>(logits.data), logits.elements(), 0.0);
          }};
  const std::int64_t row = job.model.hidden * 8;
  const std::vector<RoutedBytes> all = run(job).routed;
  for (const RoutedBytes& each : all) {
    CHECK(each.rows == 2 * 2 * 2 * 16 * row);
    CHECK(each.slots == 2 * 2 * 4 * (2 * 8) * row);
  }
  CHECK(measured_imbalance(all) == 2);  // rank 0 has every row
  job.plan.experts.capacity = 0.5;
  job.plan.experts.imbalance = 1;
  for (const RoutedBytes& each : run(job).routed) {
    CHECK(each.rows == 2 * 2 * 2 * (2 * 2) * row);
    CHECK(each.slots == 2 * 2 * 4 * (2 * 2) * row);
  }
}

/// Threads whose all-to-alls of rows are tampered with.
class TamperedRows final : public Fabric {
 public:
  using Tamper = std::function<void(CollectiveCall&)>;
  TamperedRows(Fabric& carrier, Tamper tamper) : carrier_{carrier}, tamper_{std::move(tamper)} {}
  std::string_view name() const override { return carrier_.name(); }
  int rank() const override { return carrier_.rank(); }
  int ranks() const override { return carrier_.ranks(); }
  GroupId make_group(std::span<const int> members) override { return carrier_.make_group(members); }
  Request start(const CollectiveCall& call) override {
    CollectiveCall changed = call;
    if (call.kind == models::Collective::all_to_all_v) tamper_(changed);
    return carrier_.start(changed);
  }
  Request transfer(const TransferCall& call, TransferEnd end) override {
    return carrier_.transfer(call, end);
  }
  bool test(Request request) override { return carrier_.test(request); }
  void wait(Request request) override { carrier_.wait(request); }
  void abort(std::string_view why) noexcept override { carrier_.abort(why); }

 private:
  Fabric& carrier_;
  Tamper tamper_;
};

TEST_CASE("A row that an all-to-all leaves out shows, and one that comes to another expert") {
  Plan plan = small_plan();
  const Job one{.model = experts_llama(), .plan = plan, .arithmetic = Arithmetic::ring};
  const Outcome whole = run(one);
  const std::int64_t row = one.model.hidden * 8;
  const auto tampered = [&](const TamperedRows::Tamper& tamper) {
    Job job = one;
    job.plan.data = job.plan.experts.ranks = 2;
    job.rig = [&](ThreadWorld& world, int rank) {
      Rig rig{std::make_unique<CpuDevice>(Arithmetic::ring), world.fabric(rank), nullptr};
      rig.fabric = std::make_unique<TamperedRows>(*rig.carrier, tamper);
      return rig;
    };
    return same_bits(run(job).parameters, whole.parameters);
  };
  CHECK(tampered([](CollectiveCall&) {}));
  CHECK_FALSE(tampered([&](CollectiveCall& call) {
    for (auto* parts : {&call.send_parts, &call.receive_parts}) {
      for (MemberPart& each : *parts) each.bytes -= each.bytes > row ? row : 0;
    }
  }));
  CHECK_FALSE(tampered([](CollectiveCall& call) {
    for (std::size_t i = 1; i < call.receive_parts.size(); ++i) {
      if (call.receive_parts[i].bytes != call.receive_parts[i - 1].bytes) continue;
      return std::swap(call.receive_parts[i].at, call.receive_parts[i - 1].at);
    }
  }));
}

TEST_CASE("What of experts is not executed is refused by name") {
  const auto why = [](const Model& model, auto change) {
    Plan plan = small_plan();
    change(plan);
    return lowered(model, plan).inexact_feature;
  };
  CHECK(why(experts_llama(), [](Plan&) {}).empty());
  CHECK(why(experts_llama(), [](Plan& p) {
          p.data = p.experts.ranks = 2;
          p.experts.dispatcher = models::Dispatcher::deepep;
        }) == "dispatcher 'deepep'");
  CHECK(why(experts_gpt(), [](Plan& p) {
          p.tensor = 2;
          p.sequence_parallel = true;
        }) == "expert biases with expert tensor parallelism");
  models::Software other = cpu_software();
  other.runs.keeps_expert_outputs = false;
  CHECK(lowered(experts_llama(), small_plan(), other).inexact_feature ==
        "experts whose outputs the software does not keep until backward");
}

TEST_CASE("Models of the catalogue are executed where their router is the executor's") {
  const auto why = [](const char* name, const char* changed, bool to) {
    Json config = models::model_config(name);
    if (changed != nullptr) config[changed] = to;
    const Document document = Document::from(config, name);
    return lowered(models::read_model(document.root()), small_plan()).inexact_feature;
  };
  CHECK(why("mixtral-8x7b", nullptr, true).empty());
  CHECK(why("qwen3-30b-a3b", nullptr, true).empty());
  CHECK(why("qwen3-30b-a3b", "norm_topk_prob", false).empty());
  CHECK(why("llama4-maverick-400b", nullptr, true) == "a sigmoid router");
  CHECK(why("kimi-k2", nullptr, true).empty());
  CHECK(why("deepseek-v3", "rope_interleave", false) ==
        "rotary embedding on split halves (rope_interleave)");
  CHECK(why("deepseek-v3", nullptr, true) == "layers that predict further tokens");
}

}  // namespace
}  // namespace orrery::executor
