#pragma once
// What a step's time goes to, as a profiler's trace and a prediction can both say it. Every
// picosecond of a step counts once: to the kernel that runs, else to the communication that runs
// alone, else to the reason why the GPU is idle.

#include <array>
#include <cstdint>
#include <string_view>

#include "models/prediction/prediction.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

enum class RunClass : std::uint8_t {
  gemm,           // matrix products and convolutions
  attention,      // fused attention, and the softmax of an unfused one
  memory_bound,   // norms, activations, losses, casts: whatever else computes
  optimizer,      // the update: kernels launched inside Optimizer.step, and foreach kernels
  copies,         // copies and fills on the GPU, and to the host, while nothing computes
  communication,  // collectives while nothing computes
  pipeline,       // sends and receives while nothing computes: transfer, bubble, waiting
  host,           // idle: the next launch came after the queue had run dry
  data_loading,   // idle: the host was in the data loader, or its data was copied to the GPU
  other           // idle, though launched: waits for another stream, gaps between kernels
};
inline constexpr int run_class_count = 10;
inline constexpr Words<RunClass, run_class_count> run_class_words{
    {{RunClass::gemm, "gemm"},
     {RunClass::attention, "attention"},
     {RunClass::memory_bound, "memory_bound"},
     {RunClass::optimizer, "optimizer"},
     {RunClass::copies, "copies"},
     {RunClass::communication, "communication"},
     {RunClass::pipeline, "pipeline"},
     {RunClass::host, "host"},
     {RunClass::data_loading, "data_loading"},
     {RunClass::other, "other"}}};
/// As reports call it: "exposed communication".
std::string_view title_of(RunClass which);

/// Does a kernel of the class compute?
constexpr bool computes(RunClass which) {
  return which <= RunClass::optimizer;
}

/// Time by class, in the order of the enumeration.
class ClassTimes {
 public:
  Time& operator[](RunClass which) { return times_[static_cast<std::size_t>(which)]; }
  Time operator[](RunClass which) const { return times_[static_cast<std::size_t>(which)]; }
  Time sum() const;
  /// Of the classes that compute.
  Time computing() const;

 private:
  std::array<Time, run_class_count> times_{};
};

/// A predicted breakdown in these classes. Its `other` is what the profile's runs took beyond their
/// explained times, and copies of offloaded state.
ClassTimes classes_of(const models::Breakdown& breakdown);

}  // namespace orrery::scenarios
