#include "scenarios/fitting/measured_kernel.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "scenarios/fitting/words.hpp"

namespace orrery::scenarios {

namespace {

std::int64_t stated_count(const Row& row, const char* column) {
  const auto value = row.integer(column);
  if (value && *value < 1) row.fail_expected(column, "a count of at least 1");
  return value.value_or(0);
}

MeasuredKernel read_kernel(const Row& row, const char* name) {
  MeasuredKernel kernel;
  kernel.id = cell_text(row, name);
  kernel.source = cell_text(row, "source");
  kernel.kernel = cell_text(row, "kernel");
  kernel.implementation = cell_text(row, "implementation");
  kernel.gpu = cell_text(row, "gpu");
  kernel.dtype = cell_text(row, "dtype");
  kernel.includes = cell_text(row, "includes");
  kernel.set_aside = cell_text(row, "set_aside");
  kernel.m = stated_count(row, "m");
  kernel.n = stated_count(row, "n");
  kernel.k = stated_count(row, "k_or_seq");
  kernel.heads = stated_count(row, "heads");
  kernel.kv_heads = stated_count(row, "kv_heads");
  kernel.head_dim = stated_count(row, "head_dim");
  kernel.batch = stated_count(row, "batch");
  kernel.causal = row.integer("causal").value_or(0) != 0;
  kernel.seconds = stated_seconds(row);
  return kernel;
}

}  // namespace

bool holds_kernels(const orrery::Table& table) {
  return table.has("kernel") && table.has("time_us") && table.has("k_or_seq");
}

std::vector<MeasuredKernel> read_kernels(const orrery::Table& table) {
  return read_measured<MeasuredKernel>(
      table, {"kernel", "gpu", "dtype", "m", "n", "k_or_seq", "time_us"}, read_kernel);
}

std::string identity_of(const MeasuredKernel& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", table_of(row), row.m, row.n, row.k, row.heads,
                     row.kv_heads, row.head_dim, row.batch, row.causal, row.includes);
}

std::string table_of(const MeasuredKernel& row) {
  return fmt::format("{}|{}|{}|{}", row.kernel, row.implementation, row.gpu, row.dtype);
}

std::string curve_of(const MeasuredKernel& row) {
  return fmt::format("{}|{}|{}|{}", table_of(row), row.source, row.n, row.k);
}

std::optional<std::string_view> catalogue_kernel(std::string_view implementation) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kernels{
      {{"FlashAttention-1", "flash-1"},
       {"FlashAttention-2", "flash-2"},
       {"FlashAttention-3", "flash-3"},
       {"cuDNN", "cudnn"},
       {"Triton", "triton"}}};
  for (const auto& [measured, name] : kernels) {
    if (measured == implementation) return name;
  }
  return std::nullopt;
}

std::string catalogue_dtype(const std::string& dtype) {
  if (dtype == "nvfp4") return "fp4";
  if (dtype == "float8_e4m3") return "fp8";
  return dtype;
}

}  // namespace orrery::scenarios
