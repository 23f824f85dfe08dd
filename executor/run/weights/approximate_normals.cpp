// Compiled with -ffast-math, so that the compiler may call the vector variants of libm, and for
// several instruction sets, of which the loader picks the processor's. What these change in a
// result is within the error bound that is returned with it.

#include "executor/run/weights/approximate_normals.hpp"

#include <cmath>
#include <numbers>

#include "executor/run/weights/random.hpp"

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ORRERY_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define ORRERY_CLONES
#endif

namespace orrery::executor {

namespace {

/// Error bound of a number, relative to its radius sqrt(-2 log u). In units in the last place
/// (2^-52), logarithm and cosine are off by up to 4, the rounded angle by 7, everything else by
/// less; the bound of 2^-44 is 256 of them.
/// Source  glibc manual, "Known Maximum Errors in Math Functions", vector variants
constexpr double relative_error = 0x1p-44;

}  // namespace

ORRERY_CLONES void approximate_normals(std::uint64_t seed, std::uint64_t stream,
                                       std::uint64_t first, double deviation,
                                       ApproximateNormals& to) {
  for (std::size_t i = 0; i < to.size; ++i) {
    const std::uint64_t index = first + i;
    const auto drawn =
        philox({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)},
               seed);
    to.value[i] = static_cast<double>(drawn[0]);
    to.error[i] = static_cast<double>(drawn[1]);
  }
  for (std::size_t i = 0; i < to.size; ++i) {
    const double u = (to.value[i] + 0.5) * 0x1p-32, v = (to.error[i] + 0.5) * 0x1p-32;
    const double radius = deviation * std::sqrt(-2.0 * std::log(u));
    to.value[i] = radius * std::cos(2.0 * std::numbers::pi * v);
    to.error[i] = radius * relative_error;
  }
}

}  // namespace orrery::executor
