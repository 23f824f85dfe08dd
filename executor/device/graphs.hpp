#pragma once
// CUDA graphs as a device has them: kernels recorded once, at the addresses that they had, and from
// then on launched together.

#include <cstdint>
#include <functional>

namespace orrery::executor {

struct Graph {
  std::uint32_t id = 0;
  std::int64_t nodes = 0;  // kernels and the like: an operation may be several
};

/// Of one device, on its compute queue, for the device's thread.
class Graphs {
 public:
  virtual ~Graphs() = default;

  /// What `work` runs on the device is recorded and not run. It calls Device::run alone, and with
  /// nothing but what has run before: same operations, same operands.
  /// Errors  RunFailure: what the device says; nothing is recorded then
  virtual Graph capture(const std::function<void()>& work) = 0;
  /// After all that the queue has.
  virtual void launch(const Graph& graph) = 0;
  /// Its last launch may still be on its way.
  virtual void release(const Graph& graph) noexcept = 0;
};

}  // namespace orrery::executor
