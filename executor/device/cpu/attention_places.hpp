#pragma once
// The queries that a rank's attention computes and the keys that each of them sees, as runs of
// consecutive places (token_map.hpp): of whole sequences, or of tokens that a context group shares.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/device/token_map.hpp"

namespace orrery::executor::cpu {

/// A run of `count` consecutive places: the first place, its row in the operand, and the column of
/// its score.
struct PlaceRun {
  std::int64_t place = 0, row = 0, count = 0, column = 0;
};

/// The places [first, end) that a query at this place sees of its document [begin, end).
inline std::pair<std::int64_t, std::int64_t> attended_places(const models::AttentionShape& shape,
                                                             std::int64_t place, std::int64_t begin,
                                                             std::int64_t end) {
  std::int64_t first = shape.window > 0 ? std::max(begin, place - shape.window + 1) : begin;
  std::int64_t last = end;
  if (shape.chunk > 0) {
    const std::int64_t chunk = begin + (place - begin) / shape.chunk * shape.chunk;
    first = std::max(first, chunk);
    last = std::min(last, chunk + shape.chunk);
  }
  return {first, shape.causal ? place + 1 : last};
}

class AttentionPlaces {
 public:
  /// `apart`: keys and values are a separate operand. The kernel's operation and tokens must
  /// outlive this object.
  AttentionPlaces(const Kernel& kernel, bool apart);
  AttentionPlaces(const AttentionPlaces&) = delete;
  AttentionPlaces& operator=(const AttentionPlaces&) = delete;

  std::int64_t length() const { return length_; }  // tokens of a sequence
  std::int64_t batch() const { return batch_; }    // sequences

  /// Runs of sequence `b`.
  std::vector<PlaceRun> queries(std::int64_t b) const;
  std::vector<PlaceRun> keys(std::int64_t b) const;
  /// The runs of `keys` of which any query of the run sees any key, with the columns of their
  /// scores; `width` is the number of columns.
  std::vector<PlaceRun> attended_by(const PlaceRun& queries, const std::vector<PlaceRun>& keys,
                                    std::int64_t& width) const;

  /// The keys that a query at this place sees: [first_seen, end_seen).
  std::int64_t first_seen(std::int64_t place) const { return seen(place).first; }
  std::int64_t end_seen(std::int64_t place) const {
    return causal_ ? place + 1 : seen(place).second;
  }

 private:
  std::pair<std::size_t, std::size_t> asking() const;
  std::pair<std::int64_t, std::int64_t> seen(std::int64_t place) const {
    if (of_.crosses) return {0, of_.keys};
    const auto at = static_cast<std::size_t>(place);
    return attended_places(of_, place, map_.begins[at], map_.ends[at]);
  }

  const models::AttentionShape& of_;
  const models::SequencePart& part_;
  bool causal_;
  TokenMap whole_;
  const TokenMap& map_;
  std::int64_t length_, batch_;
};

}  // namespace orrery::executor::cpu
