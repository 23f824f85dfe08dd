#pragma once
// The numbers of a software profile that a stack has in common with its relatives: where they
// usually lie, and how far stacks lie apart. What kernels and overlaps a stack has are facts of its
// source and are not among them.

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
  double low, high;  // values that are conceivable
  double usual;      // value of no stack in particular
  double spread;     // of stacks: standard deviation of the coordinate
  bool is_time;
  double (*get)(const models::Software&);
  void (*set)(models::Software&, double);
  /// Whether the stack has what the number is of.
  bool (*matters)(const models::Software&);
  bool lowered = false;  // the lowering reads it: a Program stands for one value of it

  double coordinate(double value) const;
  double value(double coordinate) const;  // within low and high
  Json written(double value) const;       // "24 us", or 1.27
};

/// Launches, jitter, seconds per step, products, memory traffic, attention, passes over the logits,
/// tensor- and data-parallel time that others wait for, share of the network, accumulation.
/// Source  spreads: stacks of scenarios/validation/runs.csv fitted one by one
const std::vector<InheritedNumber>& inherited_numbers();

/// Of a profile, by number.
std::vector<double> coordinates_of(const models::Software& software);

/// `software` with each number moved as far as `to` is from `from`: what an era changes of a number
/// stays.
models::Software with_moved(models::Software software, const std::vector<double>& from,
                            const std::vector<double>& to);

/// A profile's document with the numbers of `fitted` in place of its own.
Json with_inherited(Json profile, const models::Software& fitted);

}  // namespace orrery::scenarios
