#pragma once
// Cost of varying kernel times in a synchronous step. The ranks of a collective wait for the last
// of them: for n ranks with k kernels each since their last collective, the mean wait is
//   E[max over n of the sum of k deviations]
//   normal       s sqrt(k) e(n),                  e(n) = E[max of n standard normals]
//   exponential  s (E[max of n Gamma(k, 1)] - k)
// where s is the standard deviation of one kernel's time, independent of all others, and its mean
// is its price. Both are exact. Where ranks have waited for each other before, in their tensor
// group at every collective inside a layer, a larger group waits for the largest of sums of such
// maxima: these are many, so their sum is taken as normal, with the variance that the maxima have.
// Leaves out that pipeline stages wait for each other between two such collectives, deviations that
// last (a slow GPU is a perturbation of its own), and hosts.
// Source  David & Nagaraja 2003, "Order Statistics", section 2.1: the maximum of n has F^n

#include <cstdint>

#include "models/evaluation/priced.hpp"
#include "sim/words.hpp"

namespace orrery::models {

enum class JitterKind : std::uint8_t { normal, exponential };
inline constexpr Words<JitterKind, 2> jitter_words{
    {{JitterKind::normal, "normal"}, {JitterKind::exponential, "exponential"}}};

/// Distribution of one kernel's time around its mean.
struct KernelJitter {
  JitterKind distribution = JitterKind::normal;
  Time deviation{};  // standard deviation
};

/// Mean and variance of a maximum, for a standard deviation of 1.
struct LargestOf {
  double mean = 0, variance = 0;
};
/// The maximum of n sums of k independent deviations each.
/// Errors  n or k below 1: ContractError
LargestOf largest_of(JitterKind distribution, std::int64_t n, std::int64_t k);

/// Makes each collective longer by the mean time that its group waits for its last rank.
void add_jitter(PricedProgram& priced, const KernelJitter& jitter);

}  // namespace orrery::models
