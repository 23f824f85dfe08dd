#pragma once
// The numbers of a software profile that related stacks have in common: their usual values, and
// their spread between stacks. A stack's kernels and overlaps are facts of its source and are not
// among them.

#include <string>
#include <vector>

#include "models/software/software.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// How a number differs between stacks.
enum class Differs : std::uint8_t { by_factor, by_amount };

/// One number. Values are seconds or plain factors; a coordinate is a factor's logarithm, or the
/// amount itself.
struct InheritedNumber {
  std::string pointer;  // in the profile
  Differs differs;
  double low, high;  // range of plausible values
  double usual;      // value for an unknown stack
  double spread;     // between stacks: standard deviation of the coordinate
  bool is_time;
  double (*get)(const models::Software&);
  void (*set)(models::Software&, double);
  /// Whether the number applies to the stack.
  bool (*matters)(const models::Software&);
  bool lowered = false;  // the lowering reads it: a Program is lowered for one value of it

  double coordinate(double value) const;
  double value(double coordinate) const;  // within low and high
  Json written(double value) const;       // "24 us", or 1.27
};

/// Launches, jitter, seconds per step, GEMMs, memory traffic, attention, passes over the logits,
/// exposed tensor- and data-parallel time, share of the network, accumulation.
/// Source  spreads: stacks of scenarios/validation/runs.csv fitted one by one
const std::vector<InheritedNumber>& inherited_numbers();

/// The coordinates of a profile's numbers, in order.
std::vector<double> coordinates_of(const models::Software& software);

/// `software` with each number moved by the difference from `from` to `to`, so that changes made by
/// an era are kept.
models::Software with_moved(models::Software software, const std::vector<double>& from,
                            const std::vector<double>& to);

/// A profile's document with its numbers replaced by those of `fitted`.
Json with_inherited(Json profile, const models::Software& fitted);

}  // namespace orrery::scenarios
