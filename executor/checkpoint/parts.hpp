#pragma once
// The files of a checkpoint as records, read and written as JSON.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/tiles.hpp"
#include "sim/input/document.hpp"

namespace orrery::executor {

inline constexpr std::string_view checkpoint_format = "orrery checkpoint 1";
inline constexpr StateKind checkpoint_kinds[] = {StateKind::parameter, StateKind::first_moment,
                                                 StateKind::second_moment};

/// A tile and its position in a part.
struct StoredTile {
  Tile tile{};
  StateKind kind = StateKind::parameter;
  std::int64_t at = 0;  // byte of the file
  std::uint32_t crc = 0;
};

/// "step-0000000040", and the number in such a name; -1 in any other.
std::string checkpoint_name(std::int64_t steps);
std::int64_t checkpoint_steps(std::string_view name);
std::string part_name(int rank);  // "part-00003"

Json to_json(const StoredTile& stored);

/// The bounds of what a part's index may list: nothing beyond the ends of the run's tensors and of
/// the part.
struct PartBounds {
  std::vector<std::int64_t> elements{};  // by tensor
  std::int64_t element_size = 4;         // bytes
  std::int64_t bytes = 0;                // of the part
};
/// Errors  InputError `FILE:/tiles/3/first: ...`
std::vector<StoredTile> read_tiles(const Document& index, const PartBounds& bounds);

/// A part whose index and size are valid; its bytes have checksums, which are not checked yet.
struct CheckpointPart {
  std::string path{};  // without ".bin"
  std::int64_t bytes = 0;
  std::vector<StoredTile> tiles{};
};
/// The part that a manifest names.
/// Errors  InputError: a name that is not a part's, an index that is damaged or is another one, a
///         wrong size; RunFailure: it cannot be read
CheckpointPart open_part(const std::string& folder, const Node& named,
                         const std::vector<std::int64_t>& elements, std::int64_t element_size);

/// Reads the bytes of a part and checks them.
class PartFile {
 public:
  /// Errors  InputError `FILE: is missing`; RunFailure `FILE: cannot be read: Stale file handle`
  explicit PartFile(const std::string& path);
  ~PartFile();
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  std::int64_t bytes() const;
  /// Errors  InputError `FILE: is damaged: its checksum is wrong`; RunFailure: it cannot be read
  std::vector<std::byte> tile(const StoredTile& stored, std::int64_t element_size) const;

 private:
  std::string path_;
  int descriptor_;
};

/// Steps of the checkpoints that have a manifest, newest first; none where the folder is absent.
/// Errors  RunFailure: the folder, or one in it, cannot be read. The run then ends: who took that
///         for "no checkpoint" would begin at step 0
std::vector<std::int64_t> complete_checkpoints(const std::string& folder);

/// Adds the member `crc32c`, a checksum of all others, from which `load_sealed` detects damage.
void seal(Json& json);
/// Errors  InputError `FILE: is damaged: its checksum is wrong`; RunFailure: it cannot be read
Document load_sealed(const std::string& path);
/// The manifest of a checkpoint's folder. Errors: as load_sealed; of another format
Document load_manifest(const std::string& folder);

}  // namespace orrery::executor
