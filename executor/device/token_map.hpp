#pragma once
// Where the tokens of a rank stand, where ranks share a sequence or documents do.

#include <cstdint>
#include <vector>

namespace orrery::executor {

/// A place is a token's index in the uncut sequence; its position counts from the beginning of its
/// document. The rows of a rank are its tokens of one sequence after those of another.
struct TokenMap {
  std::vector<std::int64_t> places, positions;  // of the rank's tokens of a sequence, in order
  /// Places that attention has of a sequence on each rank of the context group, ascending: the
  /// rank's own tokens, or where tokens were traded for heads those of all ranks that traded.
  std::vector<std::vector<std::int64_t>> attended;
  std::size_t index = 0;                   // of this rank in that group
  std::vector<std::int64_t> begins, ends;  // by place: of its document

  std::uint64_t id = 0;  // among all that a process has made: devices keep copies by it

  /// Does attention have whole sequences in order, each one document?
  bool one_document() const { return attended.size() == 1 && begins.back() == 0; }
  /// ... and this rank all of their tokens?
  bool in_order() const { return one_document() && places.size() == begins.size(); }
  std::int64_t sequence() const { return static_cast<std::int64_t>(begins.size()); }
  const std::vector<std::int64_t>& own() const { return attended[index]; }
  /// Those of the rank that stands so many places after this one.
  const std::vector<std::int64_t>& ahead(std::int64_t by) const {
    return attended[(index + static_cast<std::size_t>(by)) % attended.size()];
  }
};

}  // namespace orrery::executor
