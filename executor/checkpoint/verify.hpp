#pragma once
// Checks whether checkpoints are complete and undamaged, down to the last byte, without the run
// that wrote them.

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::executor {

/// A checkpoint and what was found of it.
struct VerifiedCheckpoint {
  std::string folder{};
  std::string model{};
  std::int64_t steps = 0, ranks = 0, bytes = 0;
  std::string damage{};  // one sentence; empty: it is whole

  bool whole() const { return damage.empty(); }
};

/// Verifies all checkpoints of a folder that have a manifest, newest first; or one checkpoint, if
/// its own folder is given. Reads every byte: checksums, sizes, and that every element is there
/// exactly once.
/// Errors  InputError `FOLDER: has no checkpoint`
std::vector<VerifiedCheckpoint> verify_checkpoints(const std::string& folder);

}  // namespace orrery::executor
