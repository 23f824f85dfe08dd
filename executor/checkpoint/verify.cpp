#include "executor/checkpoint/verify.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "executor/checkpoint/folder.hpp"
#include "executor/checkpoint/parts.hpp"
#include "hardware/dtype.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t widest = std::int64_t{1} << 31;  // rows, columns: a product fits 64 bits
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

/// Bytes of an element, by the format's name.
std::int64_t element_size(const Node& element) {
  constexpr hardware::DType formats[] = {hardware::DType::fp32, hardware::DType::fp64};
  for (const hardware::DType each : formats) {
    if (element.json() == hardware::name(each)) return hardware::bits(each) / 8;
  }
  element.fail_expected("fp32 or fp64");
}

void verify(const std::string& folder, VerifiedCheckpoint& found) {
  const Document manifest = load_manifest(folder);
  const Node root = manifest.root();
  found.model = root["model"].as<std::string>();
  found.steps = root["steps"].integer(0, most);
  found.ranks = root["ranks"].integer(1, most);
  const std::int64_t size = element_size(root["element"]);
  std::vector<std::int64_t> elements, missing;
  for (const Node& each : root["tensors"].elements()) {
    elements.push_back(each["rows"].integer(1, widest) * each["columns"].integer(1, widest - 1));
    missing.push_back(elements.back());
  }
  constexpr auto kinds = static_cast<std::int64_t>(std::size(checkpoint_kinds));
  std::vector<std::int64_t> stored(elements.size(), 0);
  for (const Node& each : root["parts"].elements()) {
    const CheckpointPart part = open_part(folder, each, elements, size);
    PartFile file{part.path + ".bin"};
    for (const StoredTile& tile : part.tiles) {
      file.tile(tile, size);
      stored[tile.tile.tensor] += tile.tile.elements();
    }
    found.bytes += part.bytes;
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    if (stored[i] == kinds * elements[i]) continue;
    throw InputError{folder, fmt::format("does not hold every element of {} exactly once",
                                         root["tensors"].at(i)["name"].as<std::string>())};
  }
}

}  // namespace

std::vector<VerifiedCheckpoint> verify_checkpoints(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> folders;
  for (const std::int64_t steps : complete_checkpoints(folder)) {
    folders.push_back((fs::path{folder} / checkpoint_name(steps)).string());
  }
  if (is_there(folder + "/manifest.json")) folders = {folder};
  if (folders.empty()) throw InputError{folder, "has no checkpoint"};
  std::vector<VerifiedCheckpoint> all;
  for (const std::string& each : folders) {
    VerifiedCheckpoint& found = all.emplace_back();
    found.folder = each;
    try {
      verify(each, found);
    } catch (const InputError& error) {
      found.damage = error.what();
    }
  }
  return all;
}

}  // namespace orrery::executor
