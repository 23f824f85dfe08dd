#pragma once
// The few numbers of a software profile that step times determine: what a launch costs, how far
// kernels in a long step are slower than the same kernels alone, how much of the network gradients
// get. Everything else in a profile is a choice that the stack's source or its publication states.

#include <string>
#include <vector>

#include "models/software/software.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One number. Values are seconds or plain factors, as the profile's field is.
struct SoftwareNumber {
  std::string pointer;  // in the profile
  double low, high;     // physically plausible range
  double stride;        // smallest step of a search, as a ratio
  bool is_time;
  double (*get)(const models::Software&);
  void (*set)(models::Software&, double);

  /// Two digits of a time, hundredths of a factor, so that the written value is the one that was
  /// tried.
  double rounded(double value) const;
  /// "24 us", or 1.27.
  Json written(double value) const;
};

/// forward_launch, backward_launch, step, gemm_derate (all generations in proportion),
/// memory_derate, data_efficiency.
const std::vector<SoftwareNumber>& software_numbers();

/// A profile's document with its numbers replaced by those of `fitted`.
Json with_numbers(Json profile, const models::Software& fitted);

}  // namespace orrery::scenarios
