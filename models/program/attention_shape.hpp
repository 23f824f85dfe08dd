#pragma once
// What an attention operation computes: its sizes on one rank, and under context parallelism which
// queries attend to which ranks' keys. Kernels and costs are elsewhere.

#include <cmath>
#include <cstdint>

namespace orrery::models {

/// Sizes of one attention on one rank.
struct AttentionShape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = true;
  std::int64_t window = 0;  // sliding window in tokens; 0: unlimited
  /// Keys attended to, where the sequence is cut over ranks, or those of another sequence; 0: seq
  std::int64_t keys = 0;
  std::int64_t value_dim = 0;  // width of a value head; 0: head_dim
  std::int64_t selected = 0;   // tokens that each query attends to, chosen by an indexer; 0: all
  double score_factor = 1;     // multiplies scores, on top of 1 / sqrt(head_dim)
  std::int64_t chunk = 0;      // a query attends within its chunk of so many tokens; 0: no chunks
  bool gated = false;          // after each query head come as many columns of its output's gate
  bool sinks = false;          // reads a learned logit per head, which backward has a gradient of
  /// Cross-attention: keys and values are of another sequence of `keys` tokens, in an operand of
  /// their own without queries.
  bool crosses = false;

  double score_scale() const { return score_factor / std::sqrt(static_cast<double>(head_dim)); }
  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
  /// Columns from one query head to the next, and of all of them.
  std::int64_t query_step() const { return gated ? 2 * head_dim : head_dim; }
  std::int64_t query_columns() const { return heads * query_step(); }
};

/// Under context parallelism: the part of the sequence that an operation works on.
struct SequencePart {
  enum class Keys : std::uint8_t { own, gathered, passed };
  enum class Queries : std::uint8_t { all, early, late };
  Keys keys = Keys::own;           // of an attention: which ranks' keys and values it reads
  Queries queries = Queries::all;  // of an attention: which of the rank's sequence pieces query
  /// Offset in the context group, after this rank, of the owner of the keys that were passed here,
  /// or of the destination of a send_receive.
  std::int64_t ahead = 0;
  /// Of the last attention of a ring: overwrites the rank's own keys and values with those that it
  /// read, because backward starts from them.
  bool leaves_keys = false;
  bool merges = false;  // of an add: merges partial attention results over several ranks' keys
};

}  // namespace orrery::models
