// Plans drawn at random, in the ring: whatever the cut, the bits of one rank.

#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "models/plan/conflicts.hpp"
#include "models/plan/derived.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

using models::Plan;

struct Drawn {
  models::Model model;
  Plan plan;
};

class Plans {
 public:
  explicit Plans(std::uint32_t seed) : random_{seed} {}

  Drawn next() {
    for (;;) {
      Drawn drawn{family()(layers()), small_plan(8)};
      draw(drawn.plan);
      // No latent attention has adapters.
      if (usual_attention(drawn.model).latents) drawn.plan.task = models::Task::pretrain;
      const bool newer = drawn.model.layers.kinds().size() > 1;  // and has what it has
      if (newer) restrict(drawn);
      const bool dense = models::trains_adapters(drawn.plan);  // no experts have adapters
      if (!newer && !dense && one_of({0, 1}) == 1) add_experts(drawn);
      drawn.plan = plan_for(drawn.model, drawn.plan);
      const std::int64_t ranks = drawn.plan.gpus();
      if (ranks <= 8 && models::conflicts(drawn.plan, drawn.model, ranks).empty()) return drawn;
    }
  }

 private:
  std::int64_t one_of(std::initializer_list<std::int64_t> values) {
    return *(values.begin() + random_() % values.size());
  }
  std::int64_t layers() { return one_of({2, 3, 4}); }
  models::Model (*family())(std::int64_t) {
    constexpr std::array all{small_gpt,     small_llama, small_bert,       small_deepseek,
                             small_gpt_oss, small_delta, small_mamba,      small_chunked,
                             small_gemma,   small_olmo,  small_both_sides, small_bart};
    return all[static_cast<std::size_t>(one_of({0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))];
  }

  /// Leaves what is executed of models with parts of several kinds.
  void restrict(Drawn& drawn) {
    Plan& plan = drawn.plan;
    const models::ExpertsPart& experts = models::usual_experts(drawn.model);
    if (experts.count > 0) {
      plan.task = models::Task::pretrain;
      plan.experts.ranks = one_of({1, 2});
      plan.experts.tensor = experts.mlp.bias ? 1 : one_of({1, 2});
      plan.sequence_parallel = plan.tensor > 1;
    }
    if (drawn.model.layers.any(models::recurs)) plan.batch.documents = {};
    if (crosses(drawn.model)) {
      plan.pipeline = plan.stages.virtual_stages = plan.context = 1;
      plan.task = models::Task::pretrain;
      plan.batch.documents = {};
      plan.stages = {};
    }
    const bool exchanges = plan.context_exchange.form == models::ContextForm::ulysses ||
                           plan.context_exchange.form == models::ContextForm::hierarchical;
    if (models::usual_attention(drawn.model).sinks && exchanges) plan.context = 1;
    if (plan.context == 1) plan.context_exchange.heads = 1;
  }

  void draw(Plan& plan) {
    plan.tensor = one_of({1, 2, 4});
    plan.data = one_of({1, 2, 4});
    plan.pipeline = one_of({1, 2, 3});
    plan.sequence_parallel = plan.tensor > 1 && one_of({0, 1}) == 1;
    plan.batch.micro = one_of({1, 2});
    plan.stages.virtual_stages = plan.pipeline > 1 ? one_of({1, 2}) : 1;
    const std::vector<std::string> names = models::builtin_schedules().names();
    do {
      plan.stages.schedule = names[random_() % names.size()];
    } while ((models::builtin_schedules().at(plan.stages.schedule).chunks ==
              models::ChunksPerStage::several) != (plan.stages.virtual_stages > 1));
    plan.recompute.kind = static_cast<models::Recompute>(one_of({0, 1, 2}));
    plan.sharding.zero = static_cast<models::Zero>(one_of({0, 1, 2, 3}));
    if (plan.sharding.zero != models::Zero::none) plan.sharding.ranks = one_of({0, 0, 2});
    if (plan.sharding.zero == models::Zero::three) {
      plan.sharding.reshard = one_of({0, 1}) == 1;
      plan.sharding.prefetch = one_of({0, 1, 3});
    }
    if (plan.sharding.zero != models::Zero::none) {
      plan.offload.state = static_cast<models::Offload>(one_of({0, 0, 1, 2}));
    }
    if (plan.offload.state == models::Offload::none) {
      plan.optimizer.moments = static_cast<models::Moments>(one_of({0, 0, 1, 2}));
    }
    plan.context = one_of({1, 1, 2, 4});
    plan.context_exchange.form = static_cast<models::ContextForm>(one_of({0, 1, 2, 3, 4}));
    const bool grouped = plan.context_exchange.form == models::ContextForm::hierarchical;
    plan.context_exchange.heads = grouped && plan.context > 1 ? 2 : 1;
    if (plan.context == 1 && one_of({0, 1, 2}) == 0) plan.batch.documents = {3, 4};
    if (one_of({0, 1, 2, 3}) == 0) {
      plan.task = models::Task::lora;
      plan.adapters.rank = 2;
      if (plan.sharding.zero == models::Zero::three) plan.sharding.zero = models::Zero::one;
    }
    plan.kernels.fused_cross_entropy =
        plan.sharding.zero < models::Zero::two && one_of({0, 1}) == 1;
    if (plan.pipeline == 1) plan.offload.layers = one_of({0, 0, 1, 2});
    plan.overlap.gradients = one_of({0, 1}) == 1;
    if (one_of({0, 1}) == 1) plan.overlap.gathers = one_of({0, 1}) == 1;
    plan.sharding.bucket = Bytes{one_of({0, 1, 8000})};
    if (plan.stages.virtual_stages == 1 && plan.pipeline == 2 && one_of({0, 1}) == 1) {
      plan.stages.embedding_counts = true;
    }
  }

  void add_experts(Drawn& drawn) {
    models::ModelDraft model = draft_of(with_experts(drawn.model));
    drawn.plan.experts.ranks = one_of({1, 2, 4});
    drawn.plan.experts.tensor = one_of({1, 2});
    drawn.plan.sequence_parallel = drawn.plan.tensor > 1;
    // Biases of experts are executed whole.
    if (model.mlp.bias) drawn.plan.experts.tensor = 1;
    if (model.attention.latents) {
      model.experts.routing = {.score = models::Routing::Score::sigmoid,
                               .corrected = true,
                               .groups = 2,
                               .groups_kept = 1,
                               .best_of_group = 2};
    }
    if (one_of({0, 1}) == 0) {
      model.name += "-shared";
      model.experts.shared_width = 8;
    }
    if (one_of({0, 1}) == 1) {
      model.name += "-mixed";
      model.dense = models::dense_layers(model.depth, 0, 2);
      model.dense_width = 16;
    }
    drawn.model = built(std::move(model));
  }

  std::mt19937 random_;
};

void check_plans(std::uint32_t seed, int count) {
  std::map<std::string, Outcome> whole;
  Plans plans{seed};
  for (int i = 0; i < count; ++i) {
    const Drawn drawn = plans.next();
    INFO("plan " << i << " of seed " << seed << ": " << models::to_json(drawn.plan).dump());
    const bool packed = !drawn.plan.batch.documents.empty();
    const bool adapts = models::trains_adapters(drawn.plan);
    const std::string key = drawn.model.name + std::to_string(drawn.model.layers.size()) +
                            (packed ? " packed" : "") + (adapts ? " adapted" : "");
    if (whole.count(key) == 0) {
      Plan plan = small_plan(8);
      plan.batch.micro = 8;
      plan.batch.documents = drawn.plan.batch.documents;
      plan.task = drawn.plan.task;
      plan.adapters.rank = drawn.plan.adapters.rank;
      whole[key] =
          run({.model = drawn.model, .plan = plan, .arithmetic = Arithmetic::ring, .steps = 2});
    }
    const Outcome cut =
        run({.model = drawn.model, .plan = drawn.plan, .arithmetic = Arithmetic::ring, .steps = 2});
    CHECK(same_bits(cut.gradients, whole[key].gradients));
    CHECK(same_bits(cut.parameters, whole[key].parameters));
    CHECK(cut.steps[1].ring_loss == whole[key].steps[1].ring_loss);
    CHECK(cut.steps[1].ring_norm == whole[key].steps[1].ring_norm);
  }
}

TEST_CASE("Fifty random plans give the bits of one rank") {
  check_plans(1, 50);
}

TEST_CASE("A thousand random plans give the bits of one rank", "[slow]") {
  check_plans(2, 1000);
}

}  // namespace
}  // namespace orrery::executor
