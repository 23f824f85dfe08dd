#pragma once
// One measured kernel, as a line of a CSV file states it, and which curve the line belongs to.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/csv.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

/// Texts are as written; a count that is not stated is 0.
struct MeasuredKernel {
  std::string id, source, kernel, implementation, gpu, dtype, includes, set_aside;
  std::int64_t m = 0, n = 0, k = 0;  // for attention, k is the sequence length
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, batch = 0;
  bool causal = false;
  std::optional<double> seconds;

  /// Rows that count in a fit and in a score.
  bool usable() const { return seconds && set_aside.empty(); }
};

/// Whether a header is that of measured kernels: `kernel`, `time_us` and `k_or_seq` are there.
bool holds_kernels(const orrery::Table& table);

/// Every line. Errors  a column that is missing, a cell that is no number or out of range, a word
///                     of `kernel` or `includes` that nothing knows
std::vector<MeasuredKernel> read_kernels(const orrery::Table& table);

/// A pass of attention, as column `kernel` names it.
struct AttentionPass {
  std::string_view kernel;
  double forward = 0, backward = 0;  // how many of each
  std::string_view title;            // "attention forward"
};
inline constexpr std::string_view attention_kernels = "flash_fwd, flash_bwd or flash_fwd_bwd";
/// Errors  a kernel that is none of them: ContractError, as `read_kernels` refuses it
const AttentionPass& attention_pass(const MeasuredKernel& row);
bool is_attention(const MeasuredKernel& row);
/// Whether several heads of queries share one of keys and values.
bool has_grouped_heads(const MeasuredKernel& row);

/// What a row's time includes besides its kernel, as column `includes` says; several are separated
/// by
/// "; ".
enum class Included : std::uint8_t { quantisation, kv_cache, host_time, whole_mlp };
inline constexpr Words<Included, 4> included_words{
    {{Included::quantisation, "activation quantisation"},
     {Included::kv_cache, "kv-cache write and copies"},
     {Included::host_time, "host time below 300 us"},
     {Included::whole_mlp, "whole MLP with its GEMMs"}}};
bool includes(const MeasuredKernel& row, Included what);

/// Key of the same call, whoever measured it: all columns but source and time agree.
std::string identity_of(const MeasuredKernel& row);

/// Key of the rows that one formula is fitted to: one kernel of one implementation on one GPU and
/// dtype.
std::string table_of(const MeasuredKernel& row);

/// Key of the rows that are left out together: kernel, GPU, dtype, n and k of one source, with all
/// its m, batches and heads. For attention that is a whole sequence length.
std::string curve_of(const MeasuredKernel& row);

/// The catalogue's name of an attention kernel, "flash-2" for "FlashAttention-2"; nullopt where it
/// has none.
std::optional<std::string_view> catalogue_kernel(std::string_view implementation);

/// A dtype by its catalogue name: "nvfp4" is "fp4"; empty and unknown ones are unchanged.
std::string catalogue_dtype(const std::string& dtype);

}  // namespace orrery::scenarios
