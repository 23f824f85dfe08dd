#include "executor/checkpoint/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <limits>

#include "executor/checkpoint/crc32c.hpp"

namespace orrery::executor {

namespace {

constexpr std::string_view folder_prefix = "step-";
constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max() / 16;

std::uint32_t seal_of(const Json& json) {
  const std::string text = json.dump();
  return crc32c(text.data(), text.size());
}

}  // namespace

std::string checkpoint_name(std::int64_t steps) {
  return fmt::format("{}{:010}", folder_prefix, steps);
}

std::int64_t checkpoint_steps(std::string_view name) {
  std::int64_t steps = -1;
  if (name.substr(0, folder_prefix.size()) != folder_prefix) return -1;
  name.remove_prefix(folder_prefix.size());
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), steps);
  return error == std::errc{} && rest == name.data() + name.size() ? steps : -1;
}

std::string part_name(int rank) {
  return fmt::format("part-{:05}", rank);
}

Json to_json(const StoredTile& stored) {
  const Tile& tile = stored.tile;
  return {{"tensor", tile.tensor}, {"kind", static_cast<int>(stored.kind)},
          {"first", tile.first},   {"count", tile.count},
          {"stride", tile.stride}, {"rows", tile.rows},
          {"at", stored.at},       {"crc32c", stored.crc}};
}

std::vector<StoredTile> read_tiles(const Document& index, std::size_t tensors) {
  std::vector<StoredTile> tiles;
  for (const Node& each : index.root()["tiles"].elements()) {
    StoredTile stored;
    stored.tile.tensor = static_cast<std::uint32_t>(
        each["tensor"].integer(0, static_cast<std::int64_t>(tensors) - 1));
    stored.tile.first = each["first"].integer(0, any_size);
    stored.tile.count = each["count"].integer(1, any_size);
    stored.tile.stride = each["stride"].integer(stored.tile.count, any_size);
    stored.tile.rows = each["rows"].integer(1, any_size);
    stored.kind = static_cast<StateKind>(each["kind"].integer(0, 2));
    stored.at = each["at"].integer(0, any_size);
    stored.crc = static_cast<std::uint32_t>(
        each["crc32c"].integer(0, std::numeric_limits<std::uint32_t>::max()));
    tiles.push_back(stored);
  }
  return tiles;
}

std::vector<std::int64_t> complete_checkpoints(const std::string& folder) {
  std::vector<std::int64_t> all;
  std::error_code absent;
  for (const auto& each : std::filesystem::directory_iterator{folder, absent}) {
    const std::int64_t steps = checkpoint_steps(each.path().filename().string());
    if (steps >= 0 && std::filesystem::exists(each.path() / "manifest.json")) all.push_back(steps);
  }
  std::sort(all.rbegin(), all.rend());
  return all;
}

void seal(Json& json) {
  json.erase("crc32c");
  json["crc32c"] = seal_of(json);
}

Document load_sealed(const std::string& path) {
  Document document = Document::load(path);
  Json unsealed = document.json();
  const auto sealed = unsealed.find("crc32c");
  const bool there = sealed != unsealed.end() && sealed->is_number_unsigned();
  const std::uint64_t written = there ? sealed->get<std::uint64_t>() : 0;
  if (there) unsealed.erase("crc32c");
  if (!there || seal_of(unsealed) != written) {
    throw InputError{path, "is damaged: its checksum is wrong"};
  }
  return document;
}

}  // namespace orrery::executor
