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

/// A tile where it lies in a part.
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
/// Errors  InputError `FILE:/tiles/3/first: ...`
std::vector<StoredTile> read_tiles(const Document& index, std::size_t tensors);

/// Folders of a checkpoint folder that have a manifest, newest first.
std::vector<std::int64_t> complete_checkpoints(const std::string& folder);

/// JSON that knows whether it is as it was written: `crc32c` of all other members.
void seal(Json& json);
/// Errors  InputError `FILE: is damaged: its checksum is wrong`
Document load_sealed(const std::string& path);

}  // namespace orrery::executor
