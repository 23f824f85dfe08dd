#pragma once
// What it costs a synchronous step that kernels do not always take the same time. Those who meet
// wait for the last of them: of n ranks with k kernels each since they last met, the wait is
//   E[max over n of the sum of k deviations]
//   normal       s sqrt(k) e(n),                  e(n) = E[max of n standard normals]
//   exponential  s (E[max of n Gamma(k, 1)] - k)
// where s is the deviation of one kernel, independent of all others, and what it takes on average
// is its price. Both are exact. Where ranks have met before, in their tensor group at every
// collective inside a layer, a larger group meets with sums of such maxima: many, so their sum is
// taken as normal, with the variance that the maxima have.
// Leaves out that pipeline stages wait for each other between two such meetings, deviations that
// last (a slow GPU is a perturbation of its own), and hosts.
// Source  David & Nagaraja 2003, "Order Statistics", section 2.1: the maximum of n has F^n

#include <cstdint>

#include "models/evaluation/priced.hpp"
#include "sim/words.hpp"

namespace orrery::models {

enum class JitterKind : std::uint8_t { normal, exponential };
inline constexpr Words<JitterKind, 2> jitter_words{
    {{JitterKind::normal, "normal"}, {JitterKind::exponential, "exponential"}}};

/// How far the time of one kernel is from its mean.
struct KernelJitter {
  JitterKind distribution = JitterKind::normal;
  Time deviation{};  // standard
};

/// Mean and variance of a maximum, of deviations of 1.
struct LargestOf {
  double mean = 0, variance = 0;
};
/// Of n sums of k independent deviations each.
/// Errors  n or k below 1: ContractError
LargestOf largest_of(JitterKind distribution, std::int64_t n, std::int64_t k);

/// Makes each collective longer by the time that its group waits on average for the last of it.
void add_jitter(PricedProgram& priced, const KernelJitter& jitter);

}  // namespace orrery::models
