// The executor's own cost: a step whose kernels do nothing, per operation and per instruction, with
// and without the trace. 24 layers, 16 micro-batches: some 15,000 operations.
// Target: below 150 ns per operation, a tenth of what launching a kernel costs on a GPU.

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <cstring>

#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/runner.hpp"
#include "models/lowering/lower.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::executor {
namespace {

/// Kernels that return at once.
class NullDevice final : public Device {
 public:
  std::string description() const override { return "nothing"; }
  bool synchronous() const override { return true; }
  std::string refusal(const models::Operation&) const override { return {}; }
  std::byte* allocate(Bytes size) override {
    return static_cast<std::byte*>(std::malloc(static_cast<std::size_t>(size.count())));
  }
  void release(std::byte* memory) noexcept override { std::free(memory); }
  std::byte* allocate_host(Bytes size) override { return allocate(size); }
  void release_host(std::byte* memory) noexcept override { release(memory); }
  void read(const std::byte*, void* to, Bytes size) override {
    std::memset(to, 0, static_cast<std::size_t>(size.count()));
  }
  void write(const void*, std::byte*, Bytes) override {}
  void zero(std::byte*, Bytes) override {}
  void run(const Kernel& kernel) override { benchmark::DoNotOptimize(kernel.reads.data()); }
  void copy(const std::byte*, std::byte*, Bytes, models::Lane) override {}
  Mark mark(models::Lane) override { return {++marks_}; }
  void wait(models::Lane, Mark) override {}
  void finish() override {}
  Time time_of(Mark mark) override { return Time{mark.id}; }
  void forget_marks() override { marks_ = 0; }

 private:
  std::uint32_t marks_ = 0;
};

models::Model small_model() {
  models::ModelDraft model;
  model.name = "small";
  model.depth = 24;
  model.hidden = 16;
  model.attention.heads = model.attention.kv_heads = 2;
  model.attention.head_dim = 8;
  model.mlp.width = 32;
  model.embedding.vocab = 64;
  model.embedding.max_positions = 8;
  return built(std::move(model));
}

std::int64_t operations_of(const models::Program& program) {
  std::int64_t count = 0;
  for (const models::Instruction& each : program.classes[0].instructions) {
    if (!models::runs_phase(each)) continue;
    for (const models::Invocation& run : program.phases[each.target].invocations) {
      count += run.count * static_cast<std::int64_t>(program.blocks[run.block].operations.size());
    }
  }
  return count;
}

void interpreter(benchmark::State& state, TraceDetail detail) {
  const models::Model model = small_model();
  models::Plan plan;
  plan.batch.global = 16;
  plan.batch.seq_len = 8;
  plan.formats.precision = models::Precision::fp32;
  models::Software software;
  const models::Program program = models::lower({model, plan, software});
  NullDevice device;
  ThreadWorld world{1};
  const auto fabric = world.fabric(0);
  RunSettings settings;
  settings.trace = detail;
  Runner runner{program, software, device, *fabric, settings};
  std::int64_t steps = 0;
  for (auto each : state) runner.step(steps++);
  const auto per = [&](std::int64_t count) {
    return benchmark::Counter(static_cast<double>(steps * count),
                              benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  };
  state.counters["per_operation"] = per(operations_of(program));
  state.counters["per_instruction"] =
      per(static_cast<std::int64_t>(program.classes[0].instructions.size()));
}

BENCHMARK_CAPTURE(interpreter, no_trace, TraceDetail::none);
BENCHMARK_CAPTURE(interpreter, trace_of_operations, TraceDetail::operations);

}  // namespace
}  // namespace orrery::executor
