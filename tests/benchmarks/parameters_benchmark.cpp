// How long a run's parameters take to be drawn, on all cores that this process may use.
// Target: 1.3 billion in 12 s on two cores, so 108 million a second.

#include <benchmark/benchmark.h>

#include <map>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/runner.hpp"
#include "models/lowering/lower.hpp"

namespace orrery::executor {
namespace {

/// Memory that the system has already given: what it takes to get that is no part of drawing.
class Warm final : public CpuDevice {
 public:
  ~Warm() override {
    for (const auto& [size, memory] : free_) CpuDevice::release(memory);
  }
  std::byte* allocate(Bytes size) override {
    const auto found = free_.find(size.count());
    std::byte* const memory = found != free_.end() ? found->second : CpuDevice::allocate(size);
    if (found != free_.end()) free_.erase(found);
    sizes_[memory] = size.count();
    return memory;
  }
  void release(std::byte* memory) noexcept override { free_.emplace(sizes_[memory], memory); }
  void zero(std::byte*, Bytes) override {}

 private:
  std::map<std::byte*, std::int64_t> sizes_;
  std::multimap<std::int64_t, std::byte*> free_;
};

/// One layer of a Llama of 1.3 billion parameters, where hidden is 2048: 50 million numbers.
models::Model one_layer() {
  models::ModelDraft model;
  model.name = "one layer";
  model.family = models::Family::llama;
  model.depth = 1;
  model.hidden = 2048;
  model.attention.heads = model.attention.kv_heads = 16;
  model.attention.head_dim = 128;
  model.mlp.width = 5504;
  model.embedding.vocab = 256;
  model.norms.kind = models::Norm::rms_norm;
  model.embedding.positions = models::Positions::rotary;
  model.mlp.activation = models::Activation::silu;
  model.mlp.gated = true;
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = model.norms.bias =
      false;
  model.embedding.tied = false;
  return built(std::move(model));
}

/// Drawn, given to the device and narrowed: what the constructor of a runner does for them.
void draw(benchmark::State& state) {
  const Document document = Document::from(models::software_profile("orrery-cpu"), "orrery-cpu");
  const models::Software software = models::read_software(document.root());
  models::Plan plan;
  plan.batch.global = 1;
  plan.batch.seq_len = 8;
  plan.formats.precision = models::Precision::bf16;
  const models::Program program = models::lower({one_layer(), plan, software});
  Warm device;
  std::int64_t drawn = 0;
  const auto run = [&] {
    ThreadWorld world{1};
    const auto fabric = world.fabric(0);
    RunSettings settings;
    settings.drawn = [&](std::int64_t, std::int64_t of) { drawn = of; };
    const Runner runner{program, software, device, *fabric, settings};
    benchmark::DoNotOptimize(&runner);
  };
  run();
  for (auto unused : state) {
    static_cast<void>(unused);
    run();
  }
  state.SetItemsProcessed(state.iterations() * drawn);
}
BENCHMARK(draw)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->UseRealTime();

}  // namespace
}  // namespace orrery::executor
