#include "executor/device/cuda/products/product_attempts.hpp"

#include <fmt/format.h>

namespace orrery::executor::cuda {

std::vector<ProductAttempt> product_attempts(bool bias) {
  std::vector<ProductAttempt> all;
  if (bias) all.insert(all.end(), {{true, 256}, {true, 16}});
  all.insert(all.end(), {{false, 256}, {false, 16}});
  return all;
}

std::string product_words(std::string_view name, const models::GemmShape& s, models::DType from,
                          models::DType to) {
  std::string words = fmt::format("'{}' [{}, {}] x [{}, {}] of {} to {}", name, s.m, s.k, s.k, s.n,
                                  hardware::name(from), hardware::name(to));
  if (s.batch > 1) words += fmt::format(", {} times", s.batch);
  if (s.transpose_a) words += ", a transposed";
  if (s.transpose_b) words += ", b transposed";
  if (s.accumulate) words += ", accumulating";
  return words;
}

std::string no_product_text(std::string_view words, bool bias,
                            std::span<const std::string> answers) {
  const std::vector<ProductAttempt> attempts = product_attempts(bias);
  std::string said;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    if (i > 0) said += "; ";
    if (bias) said += attempts[i].bias ? "with bias, " : "without bias, ";
    said += fmt::format("aligned to {} bytes: {}", attempts[i].most_alignment, answers[i]);
  }
  return fmt::format("cuBLASLt has no algorithm for GEMM {} ({})", words, said);
}

}  // namespace orrery::executor::cuda
