// Gradients against differences of the loss: the only test that knows what backward should be.

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/weights/random.hpp"
#include "executor/run/weights/weights.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {
namespace {

/// A rank alone, whose optimizer changes nothing: the loss as a function of the parameters.
class Loss {
 public:
  Loss(const models::Model& model, const models::Plan& plan)
      : program_{lowered(model, plan)},
        fabric_{world_.fabric(0)},
        runner_{program_, software_, device_, *fabric_, settings()} {
    for (const StateTensor& each : runner_.layout().tensors()) {
      values_.emplace_back(static_cast<std::size_t>(each.elements()));
    }
    for (const StateRun& run : runner_.layout().runs()) {
      runner_.weights().read_state(StateKind::parameter, run.local, run.count, at(values_, run));
    }
  }

  /// Moves tensors of zeros, next to which others have no gradient.
  void fill_zeros() {
    for (std::size_t t = 0; t < values_.size(); ++t) {
      const RandomStream random{11, t};
      for (std::size_t i = 0; i < values_[t].size(); ++i) {
        if (values_[t][i] == 0) values_[t][i] = 0.05 * random.normal(i);
      }
    }
  }

  /// With tensor `which` moved by `by` along `way`.
  double at_distance(std::size_t which, const std::vector<double>& way, double by) {
    std::vector<std::vector<double>> moved = values_;
    for (std::size_t i = 0; i < way.size(); ++i) moved[which][i] += by * way[i];
    for (const StateRun& run : runner_.layout().runs()) {
      runner_.weights().load_state(StateKind::parameter, run.local, run.count, at(moved, run));
    }
    runner_.finish_loading(0);
    return runner_.step(0).loss;
  }

  const Runner& runner() const { return runner_; }
  const std::vector<std::vector<double>>& gradients() const { return gradients_; }

 private:
  static double* at(std::vector<std::vector<double>>& values, const StateRun& run) {
    return values[run.tensor].data() + run.offset;
  }

  RunSettings settings() {
    RunSettings settings;
    settings.adam.learning_rate = 0;
    settings.before_update = [this] {
      gradients_.clear();
      for (const auto& each : values_) gradients_.emplace_back(each.size());
      for (const StateRun& run : runner_.layout().runs()) {
        runner_.weights().read_state(StateKind::gradient, run.local, run.count,
                                     at(gradients_, run));
      }
    };
    return settings;
  }

  models::Program program_;
  models::Software software_ = cpu_software();
  CpuDevice device_;
  ThreadWorld world_{1};
  std::unique_ptr<Fabric> fabric_;
  std::vector<std::vector<double>> values_, gradients_;
  Runner runner_;
};

/// Along a random direction u of each tensor: (loss(+h) - loss(-h)) / 2h = gradient . u. With
/// h = 1e-5, next to weights of 0.02, the third derivative leaves 1e-6 and rounding 1e-10.
void check_gradients(const models::Model& model, const models::Plan& plan = small_plan(2)) {
  Loss loss{model, plan};
  loss.fill_zeros();
  const double h = 1e-5;
  const std::vector<double> nowhere;
  loss.at_distance(0, nowhere, 0);
  const auto gradients = loss.gradients();
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    INFO(loss.runner().layout().tensors()[t].name);
    const RandomStream random{7, t};
    std::vector<double> way(gradients[t].size());
    double expected = 0, length = 0;
    for (std::size_t i = 0; i < way.size(); ++i) {
      way[i] = random.normal(i);
      expected += way[i] * gradients[t][i];
      length += gradients[t][i] * gradients[t][i];
    }
    const double difference = loss.at_distance(t, way, h) - loss.at_distance(t, way, -h);
    CHECK(difference / (2 * h) == Approx(expected).margin(1e-5 * std::sqrt(length) + 1e-9));
    CHECK(length > 0);
  }
}

TEST_CASE("Gradients of a small GPT are the slopes of its loss") {
  check_gradients(small_gpt());
}

TEST_CASE("Gradients of a small Llama are the slopes of its loss") {
  check_gradients(small_llama());
}

TEST_CASE("Gradients of attention sinks, clamped gates and biases of experts are slopes") {
  // No gate crosses the limit on the way, where the loss has no slope.
  check_gradients(changed(small_gpt_oss(), [](models::ModelDraft& model) { model.mlp.limit = 7; }));
}

TEST_CASE("Gradients of the delta rule, of gated attention and gated experts are slopes") {
  check_gradients(small_delta());
}

TEST_CASE("Gradients of Mamba-2 and of experts of narrowed tokens are slopes") {
  check_gradients(small_mamba());
}

TEST_CASE("Gradients of attention within chunks are slopes") {
  check_gradients(small_chunked());
}

TEST_CASE("Gradients of norms of outputs, and of those of 1 + weight, are slopes") {
  check_gradients(small_gemma());
  check_gradients(small_olmo());
}

TEST_CASE("Gradients of both sides of cross-attention are slopes") {
  check_gradients(small_both_sides());
  check_gradients(small_bart());
  check_gradients(changed(small_llama(), [](models::ModelDraft& model) {
    model.encoder = models::EncoderPart{.layers = 2, .seq_len = 5};
  }));
}

TEST_CASE("Gradients of other kinds of layers are the slopes of their loss") {
  models::ModelDraft model = draft_of(small_llama(1));
  SECTION("norms of queries and keys, a sliding window") {
    model.attention.qk_norm = true;
    model.attention.window = 3;
  }
  SECTION("attention and MLP side by side, one norm, relu") {
    model = draft_of(small_gpt(1));
    model.parallel_block = model.norms.shared = true;
    model.mlp.activation = models::Activation::relu;
  }
  SECTION("attention and MLP side by side, two norms, untied") {
    model = draft_of(small_gpt(1));
    model.parallel_block = true;
    model.embedding.tied = false;
  }
  SECTION("latent attention") {
    model = draft_of(small_deepseek(1));
  }
  SECTION("latent attention, queries of the input") {
    model = draft_of(small_deepseek(1));
    model.attention.latents->query_rank = 0;
  }
  SECTION("every token sees every other, a norm behind the embedding") {
    model = draft_of(small_gpt(1));
    model.causal = false;
    model.norms.embedding = true;
  }
  check_gradients(built(model));
}

TEST_CASE("Gradients of adapters of single matrices are the slopes of the loss") {
  using models::LoraTarget;
  models::Plan plan = small_plan(2);
  plan.task = models::Task::lora;
  plan.adapters.rank = 2;
  SECTION("queries and values, up, embedding and head") {
    plan.adapters.targets = {LoraTarget::query, LoraTarget::value, LoraTarget::up_part,
                             LoraTarget::embedding, LoraTarget::head};
  }
  SECTION("keys and gates") {
    plan.adapters.targets = {LoraTarget::key, LoraTarget::gate_part};
  }
  check_gradients(small_llama(), plan);
}

}  // namespace
}  // namespace orrery::executor
