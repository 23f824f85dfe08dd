#pragma once
// What an attention computes: its sizes, and of ranks that share a sequence whose keys it reads.

#include <cmath>
#include <cstdint>

namespace orrery::models {

/// Sizes of one attention on one rank.
struct AttentionShape {
  std::int64_t batch = 0, seq = 0, heads = 0, kv_heads = 0, head_dim = 0;
  bool causal = true;
  std::int64_t window = 0;     // tokens that one attends to at most; 0: all before it
  std::int64_t keys = 0;       // of a part of the sequence: what its tokens attend to; 0: seq
  std::int64_t value_dim = 0;  // of a value where it is not head_dim; 0: head_dim
  double score_factor = 1;     // of scores, on top of 1 / sqrt(head_dim)

  double score_scale() const { return score_factor / std::sqrt(static_cast<double>(head_dim)); }
  std::int64_t value_width() const { return value_dim > 0 ? value_dim : head_dim; }
};

/// Of ranks that share a sequence: what an attention reads of it, and what brings it there.
struct SequencePart {
  enum class Keys : std::uint8_t { own, gathered, passed };
  enum class Queries : std::uint8_t { all, early, late };
  Keys keys = Keys::own;           // of an attention: whose keys and values it reads
  Queries queries = Queries::all;  // ... and which of the rank's pieces ask
  /// How many places after this rank in its group stands the one whose keys were passed here, or to
  /// which a send_receive sends.
  std::int64_t ahead = 0;
  /// An attention that leaves the keys which it read in the place of the rank's own: backward
  /// begins with them.
  bool leaves_keys = false;
  bool merges = false;  // an add of what attentions to several ranks' keys have made
};

}  // namespace orrery::models
