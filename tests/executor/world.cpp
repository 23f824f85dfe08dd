#include "tests/executor/world.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/formats.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/weights/weights.hpp"
#include "models/lowering/lower.hpp"
#include "models/plan/conflicts.hpp"
#include "models/software/software.hpp"

namespace orrery::executor {

namespace {

/// Collects what the ranks hold.
class Gathering {
 public:
  explicit Gathering(Outcome& outcome) : outcome_{outcome} {}

  enum class Whose { writer, anybody };

  void take(const Runner& runner, StateKind kind, Tensors& into, Whose whose = Whose::writer) {
    const std::lock_guard guard{lock_};
    const bool of_gradient = kind == StateKind::gradient;
    const models::DType format =
        of_gradient ? runner.weights().formats().gradient : runner.weights().formats().state;
    for (const StateTensor& each : runner.layout().tensors()) {
      into[each.name].resize(static_cast<std::size_t>(each.elements()), std::nan(""));
    }
    for (const StateRun& run : runner.layout().runs()) {
      if (whose == Whose::writer && !run.writer) continue;
      std::vector<double>& to = into[runner.layout().tensors()[run.tensor].name];
      double* first = to.data() + run.offset;
      with_format(format, [&]<class T>(Type<T>) {
        std::vector<T> stored(static_cast<std::size_t>(run.count));
        runner.weights().read_state(kind, run.local, run.count, stored.data());
        convert(stored.data(), run.count, first);
      });
    }
  }

  Outcome& outcome() { return outcome_; }

 private:
  std::mutex lock_;
  Outcome& outcome_;
};

class DisturbedDevice final : public CpuDevice {
 public:
  DisturbedDevice(Arithmetic arithmetic, const std::function<void(Kernel&)>& disturb)
      : CpuDevice{arithmetic}, disturb_{disturb} {}

  void run(const Kernel& kernel) override {
    Kernel changed = kernel;
    if (disturb_) disturb_(changed);
    CpuDevice::run(changed);
  }

 private:
  const std::function<void(Kernel&)>& disturb_;
};

Rig processor(const Job& job, ThreadWorld& world, int rank) {
  return {std::make_unique<DisturbedDevice>(job.arithmetic, job.disturb), nullptr,
          world.fabric(rank)};
}

void run_rank(const Job& job, const models::Program& program, const models::Software& software,
              const Rig& rig, Gathering& all) {
  Fabric& fabric = *rig.fabric;
  RunSettings settings = job.settings;
  settings.arithmetic = job.arithmetic;
  Runner* self = nullptr;
  bool seen = false;
  // Both make the host wait for the device, and so hide what is missing between its queues.
  if (!job.rig) {
    settings.freed = Freed::poisoned;
    settings.before_update = [&] {
      if (!seen) all.take(*self, StateKind::gradient, all.outcome().gradients);
      seen = true;
    };
  }
  Runner runner{program, software, *rig.device, fabric, settings};
  self = &runner;
  for (std::int64_t step = 0; step < job.steps; ++step) {
    const StepOutcome outcome = runner.step(step);
    if (fabric.rank() == 0) all.outcome().steps.push_back(outcome);
  }
  all.take(runner, StateKind::parameter, all.outcome().parameters);
  all.take(runner, StateKind::first_moment, all.outcome().first);
  all.take(runner, StateKind::second_moment, all.outcome().second);
  const auto rank = static_cast<std::size_t>(fabric.rank());
  all.take(runner, StateKind::parameter, all.outcome().of_ranks[rank], Gathering::Whose::anybody);
  all.outcome().memory[rank] = runner.memory();
  all.outcome().traces[rank] = runner.trace();
  all.outcome().graphs[rank] = runner.graphs();
  all.outcome().routed[rank] = runner.routed();
}

}  // namespace

models::Software cpu_software() {
  const Document document = Document::from(models::software_profile("orrery-cpu"), "orrery-cpu");
  return models::read_software(document.root());
}

models::Program lowered(const models::Model& model, const models::Plan& plan,
                        const models::Software& software) {
  models::Program program = models::lower({model, plan, software});
  models::check(program);
  return program;
}

Outcome run(const Job& job) {
  const models::Plan plan = plan_for(job.model, job.plan);
  const auto conflicts = models::conflicts(plan, job.model, plan.gpus());
  INFO((conflicts.empty() ? std::string{} : conflicts.front().problem));
  REQUIRE(conflicts.empty());
  const models::Software software = job.software.value_or(cpu_software());
  models::Program program = lowered(job.model, plan, software);
  if (job.tamper) job.tamper(program);
  const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
  Outcome outcome;
  outcome.of_ranks.resize(ranks);
  outcome.memory.resize(ranks);
  outcome.traces.resize(ranks);
  outcome.graphs.resize(ranks);
  outcome.routed.resize(ranks);
  Gathering all{outcome};
  ThreadWorld world{static_cast<int>(ranks), std::chrono::seconds{20}};
  std::vector<std::exception_ptr> errors(ranks);
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        const int number = static_cast<int>(rank);
        const Rig rig = job.rig ? job.rig(world, number) : processor(job, world, number);
        run_rank(job, program, software, rig, all);
      } catch (...) {
        errors[rank] = std::current_exception();
        world.abort("a rank failed");
      }
    });
  }
  for (std::thread& each : threads) each.join();
  std::exception_ptr first;
  for (const std::exception_ptr& error : errors) {
    if (!error) continue;
    if (!first) first = error;
    try {
      std::rethrow_exception(error);
    } catch (const RunFailure& failure) {
      if (failure.code() != Exit::peer_failed) first = error;
    } catch (...) {
      first = error;
    }
  }
  if (first) std::rethrow_exception(first);
  return outcome;
}

void go_on_from(const Outcome& left, std::int64_t steps, Runner& runner) {
  const auto load = [&](StateKind kind, const Tensors& from) {
    for (const StateRun& run : runner.layout().runs()) {
      const auto& values = from.at(runner.layout().tensors()[run.tensor].name);
      runner.weights().load_state(kind, run.local, run.count, values.data() + run.offset);
    }
  };
  load(StateKind::parameter, left.parameters);
  load(StateKind::first_moment, left.first);
  load(StateKind::second_moment, left.second);
  runner.finish_loading(steps);
}

double distance(const Tensors& a, const Tensors& b) {
  double largest = 0;
  REQUIRE(a.size() == b.size());
  for (const auto& [name, of_b] : b) {
    const std::vector<double>& of_a = a.at(name);
    REQUIRE(of_a.size() == of_b.size());
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < of_b.size(); ++i) {
      difference += (of_a[i] - of_b[i]) * (of_a[i] - of_b[i]);
      norm += of_b[i] * of_b[i];
    }
    const double relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    if (!(relative <= largest)) largest = relative;  // NaN too
  }
  return largest;
}

bool same_bits(const Tensors& a, const Tensors& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, of_b] : b) {
    const auto found = a.find(name);
    if (found == a.end() || found->second.size() != of_b.size()) return false;
    const std::size_t size = of_b.size() * sizeof(double);
    if (size > 0 && std::memcmp(found->second.data(), of_b.data(), size) != 0) return false;
  }
  return true;
}

models::Model small_gpt(std::int64_t layers) {
  models::ModelDraft model;
  model.name = "small-gpt";
  model.depth = layers;
  model.hidden = 16;
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = 4;
  model.mlp.width = 24;
  model.embedding.vocab = 37;
  model.embedding.max_positions = 12;
  return built(std::move(model));
}

models::Model small_llama(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_gpt(layers));
  model.name = "small-llama";
  model.family = models::Family::llama;
  model.attention.heads = 8;
  model.attention.kv_heads = 4;
  model.norms.kind = models::Norm::rms_norm;
  model.embedding.positions = models::Positions::rotary;
  model.mlp.activation = models::Activation::silu;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias =
      false;
  model.embedding.tied = false;
  return built(std::move(model));
}

models::Model small_bert(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_gpt(layers));
  model.name = "small-bert";
  model.family = models::Family::bert;
  model.causal = model.norms.final = false;
  model.embedding.token_types = 2;
  model.mlp.activation = models::Activation::gelu_erf;
  model.norms.after_residual = model.norms.embedding = true;
  model.head.transform = model.head.bias = true;
  return built(std::move(model));
}

models::Model small_deepseek(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_llama(layers));
  model.name = "small-deepseek";
  model.attention.heads = model.attention.kv_heads = 4;
  model.attention.head_dim = 6;
  model.attention.value_dim = 4;
  model.attention.latents = {.query_rank = 8, .kv_rank = 5, .rotary_dim = 2};
  return built(std::move(model));
}

models::Model small_gpt_oss(std::int64_t layers) {
  models::ModelDraft model = draft_of(with_experts(small_llama(layers)));
  model.name = "small-gpt-oss";
  model.attention.sinks = model.attention.qkv_bias = model.attention.output_bias = true;
  model.attention.window = 3;
  model.full = models::every_nth(layers, 2);
  model.experts.router_bias = model.mlp.bias = model.mlp.clamped = true;
  model.mlp.limit = 0.002;  // some of the first step's gates and values are beyond it
  return built(std::move(model));
}

models::Model small_delta(std::int64_t layers) {
  models::ModelDraft model = draft_of(with_experts(small_llama(layers)));
  model.name = "small-delta";
  model.attention.gated = model.attention.qk_norm = true;
  model.experts.shared_width = 8;
  model.experts.shared_gate = true;
  model.experts.mlp = model.mlp;
  const models::DeltaPart delta{
      .key_heads = 4, .key_dim = 3, .value_heads = 8, .value_dim = 2, .taps = 3};
  for (std::int64_t i = 0; i < layers; ++i) {
    models::Layer layer{delta, model.experts};
    if (i % 2 == 1) layer.mixer = model.attention;
    model.layers.push_back(layer);
  }
  return built(std::move(model));
}

models::Model small_mamba(std::int64_t layers) {
  models::ModelDraft model = draft_of(with_experts(small_llama(layers)));
  model.name = "small-mamba";
  model.mlp.gated = false;
  model.experts.mlp = model.mlp;
  model.experts.narrow = 6;
  model.experts.shared_width = 8;
  // Chunks of 3: the last of a sequence is shorter.
  const models::Mamba2Part mamba{
      .heads = 8, .head_dim = 3, .groups = 4, .state = 5, .taps = 3, .chunk = 3};
  const models::Layer all[] = {{mamba, models::NoPart{}},
                               {models::NoPart{}, model.experts},
                               {model.attention, models::NoPart{}},
                               {models::NoPart{}, model.mlp}};
  for (std::int64_t i = 0; i < layers; ++i) model.layers.push_back(all[i % 4]);
  return built(std::move(model));
}

models::Model small_chunked(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_llama(layers));
  model.name = "small-chunked";
  model.attention.chunk = 3;
  model.full = models::every_nth(layers, 2);
  return built(std::move(model));
}

models::Model small_gemma(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_llama(layers));
  model.name = "small-gemma";
  model.norms.sandwich = model.attention.qk_norm = model.embedding.tied = true;
  model.norms.offset = 1;
  model.embedding.multiplier = 4;
  model.embedding.rotary.score_factor = 0.5;
  model.attention.window = 3;
  model.attention.rotary_base = 100;
  model.full = models::every_nth(layers, 2);
  model.mlp.activation = models::Activation::gelu;
  return built(std::move(model));
}

models::Model small_olmo(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_llama(layers));
  model.name = "small-olmo";
  model.norms.of_outputs = model.attention.qk_norm = true;
  return built(std::move(model));
}

models::Model small_both_sides(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_gpt(layers));
  model.name = "small-both-sides";
  model.encoder = models::EncoderPart{.layers = 3, .seq_len = 12, .position_rows = 14};
  model.encoder_width = 24;
  return built(std::move(model));
}

models::Model small_bart(std::int64_t layers) {
  models::ModelDraft model = draft_of(small_both_sides(layers));
  model.name = "small-bart";
  model.norms.after_residual = model.norms.embedding = true;
  model.norms.final = false;
  model.mlp.activation = models::Activation::gelu_erf;
  return built(std::move(model));
}

models::Model with_experts(const models::Model& plain) {
  models::ModelDraft model = draft_of(plain);
  model.name += "-experts";
  model.experts.count = 4;
  model.experts.per_token = 2;
  return built(std::move(model));
}

models::Plan small_plan(std::int64_t samples) {
  models::Plan plan;
  plan.batch.global = samples;
  plan.batch.seq_len = 8;
  plan.formats.precision = models::Precision::fp64;
  plan.experts.imbalance = 2;
  return plan;
}

models::Plan plan_for(const models::Model& model, models::Plan plan) {
  if (usual_experts(model).count == 0) plan.experts.imbalance = 1;
  return plan;
}

}  // namespace orrery::executor
