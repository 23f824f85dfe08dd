#include "executor/checkpoint/parts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <limits>

#include "executor/checkpoint/folder.hpp"
#include "executor/crc32c.hpp"
#include "sim/input/unreadable_file.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::executor {

namespace {

constexpr std::string_view folder_prefix = "step-";
constexpr std::int64_t any_size = std::numeric_limits<std::int64_t>::max() / 16;
constexpr std::string_view part_prefix = "part-";

std::uint32_t seal_of(const Json& json) {
  const std::string text = json.dump();
  return crc32c(text.data(), text.size());
}

RunFailure cannot_read(const std::string& path) {
  return unreadable(path, {errno, std::generic_category()});
}

/// An absent file is damage; one that cannot be read is not: it may be whole.
Document load(const std::string& path) {
  try {
    return Document::load(path);
  } catch (const UnreadableFile& error) {
    if (error.reason() == std::errc::no_such_file_or_directory) throw;
    throw unreadable(path, error.reason());
  }
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

std::vector<StoredTile> read_tiles(const Document& index, const PartBounds& bounds) {
  std::vector<StoredTile> tiles;
  const auto tensors = static_cast<std::int64_t>(bounds.elements.size());
  for (const Node& each : index.root()["tiles"].elements()) {
    StoredTile stored;
    Tile& tile = stored.tile;
    tile.tensor = static_cast<std::uint32_t>(each["tensor"].integer(0, tensors - 1));
    const std::int64_t elements = bounds.elements[tile.tensor];
    tile.first = each["first"].integer(0, elements - 1);
    const std::int64_t left = elements - tile.first;
    tile.count = each["count"].integer(1, left);
    tile.stride = each["stride"].integer(tile.count, any_size);
    tile.rows = each["rows"].integer(1, 1 + (left - tile.count) / tile.stride);
    stored.kind = static_cast<StateKind>(each["kind"].integer(0, 2));
    const std::int64_t size = tile.elements() * bounds.element_size;
    if (size > bounds.bytes) each["rows"].fail("more elements than the part has bytes for");
    stored.at = each["at"].integer(0, bounds.bytes - size);
    stored.crc = static_cast<std::uint32_t>(
        each["crc32c"].integer(0, std::numeric_limits<std::uint32_t>::max()));
    tiles.push_back(stored);
  }
  return tiles;
}

CheckpointPart open_part(const std::string& folder, const Node& named,
                         const std::vector<std::int64_t>& elements, std::int64_t element_size) {
  const Node name = named["name"];
  const std::string file = name.as<std::string>();
  const bool ours = file.size() > part_prefix.size() && file.starts_with(part_prefix) &&
                    file.find_first_not_of("0123456789", part_prefix.size()) == std::string::npos;
  if (!ours) name.fail_expected("a name such as \"part-00003\"");
  CheckpointPart part{.path = folder + "/" + file, .bytes = named["bytes"].integer(0, any_size)};
  const Document index = load_sealed(part.path + ".json");
  if (index.json()["crc32c"] != named["index_crc32c"].json()) {
    throw InputError{part.path + ".json", "does not match the manifest"};
  }
  const std::int64_t size = PartFile{part.path + ".bin"}.bytes();
  if (size != part.bytes) {
    throw InputError{part.path + ".bin",
                     fmt::format("is damaged: expected {} bytes, found {}", part.bytes, size)};
  }
  part.tiles =
      read_tiles(index, {.elements = elements, .element_size = element_size, .bytes = part.bytes});
  return part;
}

PartFile::PartFile(const std::string& path)
    : path_{path}, descriptor_{through_signals([&] {
        return ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      })} {
  if (descriptor_ < 0 && errno == ENOENT) throw InputError{path_, "is missing"};
  if (descriptor_ < 0) throw cannot_read(path_);
}

PartFile::~PartFile() {
  ::close(descriptor_);
}

std::int64_t PartFile::bytes() const {
  struct stat found {};
  if (::fstat(descriptor_, &found) != 0) throw cannot_read(path_);
  return found.st_size;
}

std::vector<std::byte> PartFile::tile(const StoredTile& stored, std::int64_t element_size) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(stored.tile.elements() * element_size));
  std::size_t done = 0;
  for (ssize_t size = 1; size > 0 && done < bytes.size(); done += static_cast<std::size_t>(size)) {
    size = through_signals([&] {
      return ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                     stored.at + static_cast<off_t>(done));
    });
    if (size < 0) throw cannot_read(path_);
  }
  if (done < bytes.size() || crc32c(bytes.data(), bytes.size()) != stored.crc) {
    throw InputError{path_, "is damaged: its checksum is wrong"};
  }
  return bytes;
}

std::vector<std::int64_t> complete_checkpoints(const std::string& folder) {
  std::vector<std::int64_t> all;
  for (const std::string& name : names_in(folder)) {
    const std::int64_t steps = checkpoint_steps(name);
    if (steps >= 0 && is_there(folder + "/" + name + "/manifest.json")) all.push_back(steps);
  }
  std::sort(all.rbegin(), all.rend());
  return all;
}

void seal(Json& json) {
  json.erase("crc32c");
  json["crc32c"] = seal_of(json);
}

Document load_sealed(const std::string& path) {
  Document document = load(path);
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

Document load_manifest(const std::string& folder) {
  const std::string path = folder + "/manifest.json";
  Document manifest = load_sealed(path);
  const Node format = manifest.root()["format"];
  if (format.json() != checkpoint_format) format.fail_expected(checkpoint_format);
  return manifest;
}

}  // namespace orrery::executor
