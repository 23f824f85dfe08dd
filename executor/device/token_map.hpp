#pragma once
// Positions of a rank's tokens where ranks share a sequence (context parallelism) or several
// documents are packed into one.

#include <cstdint>
#include <vector>

namespace orrery::executor {

/// A token's place is its index in the uncut sequence; its position counts from the beginning of
/// its document. A rank's rows are its tokens of the first sequence, then those of the next.
struct TokenMap {
  std::vector<std::int64_t> places, positions;  // of the rank's tokens of a sequence, in order
  /// For each rank of the context group, the places of a sequence that attention has there,
  /// ascending: those of the rank's own tokens or, where an all-to-all traded tokens for heads,
  /// those of all ranks that took part in it.
  std::vector<std::vector<std::int64_t>> attended;
  std::size_t index = 0;                   // of this rank in that group
  std::vector<std::int64_t> begins, ends;  // by place: its document is [begin, end)

  std::uint64_t id = 0;  // unique in the process: devices keep copies by it

  /// Does attention have whole sequences in order, each one document?
  bool one_document() const { return attended.size() == 1 && begins.back() == 0; }
  /// Does this rank moreover have all of their tokens?
  bool in_order() const { return one_document() && places.size() == begins.size(); }
  std::int64_t sequence() const { return static_cast<std::int64_t>(begins.size()); }
  const std::vector<std::int64_t>& own() const { return attended[index]; }
  /// The attended places of the rank that is `by` places after this one in the context group.
  const std::vector<std::int64_t>& ahead(std::int64_t by) const {
    return attended[(index + static_cast<std::size_t>(by)) % attended.size()];
  }
};

}  // namespace orrery::executor
