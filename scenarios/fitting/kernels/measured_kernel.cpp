#include "scenarios/fitting/kernels/measured_kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "scenarios/fitting/words.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

std::int64_t stated_count(const Row& row, const char* column) {
  const auto value = row.integer(column);
  if (value && *value < 1) row.fail_expected(column, "a count of at least 1");
  return value.value_or(0);
}

constexpr AttentionPass attention_passes[] = {
    {"flash_fwd", 1, 0, "attention forward"},
    {"flash_bwd", 0, 1, "attention backward"},
    {"flash_fwd_bwd", 1, 1, "attention forward and backward"},
};

const AttentionPass* pass_named(std::string_view kernel) {
  for (const AttentionPass& each : attention_passes) {
    if (each.kernel == kernel) return &each;
  }
  return nullptr;
}

/// Refuses words that would otherwise be taken for something else.
void check_words(const Row& row, const MeasuredKernel& kernel) {
  if (is_attention(kernel) && pass_named(kernel.kernel) == nullptr) {
    row.fail_expected("kernel", attention_kernels);
  }
  std::string_view rest = kernel.includes;
  while (!rest.empty()) {
    constexpr std::string_view separator = "; ";
    const std::size_t end = std::min(rest.find(separator), rest.size());
    if (!value_of(included_words, rest.substr(0, end))) {
      row.fail_expected("includes", fmt::format("nothing, or '{}', separated by '; '",
                                                fmt::join(texts(included_words), "', '")));
    }
    rest.remove_prefix(std::min(end + separator.size(), rest.size()));
  }
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
  check_words(row, kernel);
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

const AttentionPass& attention_pass(const MeasuredKernel& row) {
  const AttentionPass* found = pass_named(row.kernel);
  ensure(found != nullptr, "a row of attention has a known pass");
  return *found;
}

bool is_attention(const MeasuredKernel& row) {
  return row.kernel.starts_with("flash_");
}

bool has_grouped_heads(const MeasuredKernel& row) {
  return row.kv_heads > 0 && row.kv_heads < row.heads;
}

bool includes(const MeasuredKernel& row, Included what) {
  return mentions(row.includes, word_of(included_words, what));
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
  constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kernels{
      {{"AITER", "aiter-2025"},
       {"AOTriton (PyTorch)", "aotriton"},
       {"FlashAttention-1", "flash-1"},
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
