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
  std::int64_t first_seen(std::int64_t place) const {
    const std::int64_t begin = map_.begins[static_cast<std::size_t>(place)];
    return of_.window > 0 ? std::max(begin, place - of_.window + 1) : begin;
  }
  std::int64_t end_seen(std::int64_t place) const {
    return causal_ ? place + 1 : map_.ends[static_cast<std::size_t>(place)];
  }

 private:
  std::pair<std::size_t, std::size_t> asking() const;

  const models::AttentionShape& of_;
  const models::SequencePart& part_;
  bool causal_;
  TokenMap whole_;
  const TokenMap& map_;
  std::int64_t length_, batch_;
};

}  // namespace orrery::executor::cpu
