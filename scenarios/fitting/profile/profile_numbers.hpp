#pragma once
// The numbers of a software profile that step times determine: what a launch costs, how much slower
// kernels are in a long step than alone, how much communication is exposed. A stack's kernels and
// what it overlaps are facts of its source and are not among them.

#include <Eigen/Core>
#include <functional>
#include <string>
#include <vector>

#include "models/software/software.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// How a number differs between stacks.
enum class Differs : std::uint8_t { by_factor, by_amount };

/// One number. Values are seconds or plain factors; a coordinate is a factor's logarithm, or the
/// amount itself.
struct ProfileNumber {
  std::string pointer;  // in the profile
  Differs differs = Differs::by_factor;
  double low = 0, high = 0;  // range of plausible values
  double usual = 1;          // value for an unknown stack
  double spread = 0;         // between stacks: standard deviation of the coordinate
  std::string steps{};       // a step that would determine it
  std::function<double(const models::Software&)> get{};
  std::function<void(models::Software&, double)> set{};
  /// Whether the number applies to the stack.
  std::function<bool(const models::Software&)> matters = [](const auto&) { return true; };
  /// Whether it means the same in two stacks: with what they overlap, the number that says how much
  /// is still exposed differs.
  std::function<bool(const models::Software&, const models::Software&)> alike =
      [](const auto&, const auto&) { return true; };
  bool is_time = false;
  bool lowered = false;      // the lowering reads it: a Program is lowered for one value of it
  std::string generation{};  // of GPUs that it applies to; empty: all
  std::string site_key{};    // field of a site's entry; empty: it depends on the stack only

  double coordinate(double value) const;
  double value(double coordinate) const;  // within low and high
  Json written(double value) const;       // "24 us", or 1.27
  /// A spread of the coordinate as a profile states it: of a factor's logarithm, or a time.
  Json written_spread(double spread) const;
};

/// Launches, jitter, seconds per step, GEMMs, memory traffic, attention, scans, passes over logits,
/// exposed tensor- and data-parallel time, share of the network, accumulation; and the GEMMs of
/// each GPU generation over those of all.
/// Source  spreads: stacks of scenarios/validation/runs.csv fitted one by one
const std::vector<ProfileNumber>& profile_numbers();

/// The coordinates of a profile's numbers, in order.
Eigen::VectorXd coordinates_of(const models::Software& software);

/// `software` with each number moved by the difference from `from` to `to`, so that changes made by
/// an era are kept.
models::Software with_moved(models::Software software, const Eigen::VectorXd& from,
                            const Eigen::VectorXd& to);

/// A profile's document with its numbers replaced by those of `fitted`.
Json with_numbers(Json profile, const models::Software& fitted);

}  // namespace orrery::scenarios
