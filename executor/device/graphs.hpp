#pragma once
// CUDA graphs of a device: kernels are recorded once, with the addresses of their operands, and
// from then on launched together.

#include <cstdint>
#include <functional>

namespace orrery::executor {

struct Graph {
  std::uint32_t id = 0;
  std::int64_t nodes = 0;  // kernels and the like; one operation may be several
};

/// The graphs of one device, on its compute queue; used by the device's thread only.
class Graphs {
 public:
  virtual ~Graphs() = default;

  /// Records what `work` runs on the device, without running it. `work` calls Device::run alone,
  /// with operations and operands that have all run before.
  /// Errors  RunFailure: what the device says; nothing is recorded then
  virtual Graph capture(const std::function<void()>& work) = 0;
  /// Enqueues the graph after all work on the compute queue.
  virtual void launch(const Graph& graph) = 0;
  /// Frees the graph; its last launch may still be running.
  virtual void release(const Graph& graph) noexcept = 0;
};

}  // namespace orrery::executor
