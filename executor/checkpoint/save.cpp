// Writes a checkpoint.

#include <algorithm>
#include <filesystem>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/parts.hpp"
#include "executor/crc32c.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t buffered = 4 << 20;  // bytes written at once

/// Writes one tile, run by run, and returns its checksum.
std::uint32_t write_tile(const CheckpointState& state, StateKind kind, const Tile& tile,
                         std::int64_t size, DurableFile& file) {
  std::vector<std::byte> buffer;
  buffer.reserve(static_cast<std::size_t>(std::min(buffered, tile.elements() * size)));
  std::uint32_t crc = 0;
  const auto flush = [&] {
    crc = crc32c(buffer.data(), buffer.size(), crc);
    file.write(buffer.data(), buffer.size());
    buffer.clear();
  };
  const std::int64_t most = std::max<std::int64_t>(1, buffered / size);
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t at = 0; at < tile.count; at += most) {
      const std::int64_t count = std::min(most, tile.count - at);
      const std::size_t end = buffer.size();
      buffer.resize(end + static_cast<std::size_t>(count * size));
      state.read(kind, tile.local + row * tile.count + at, count, buffer.data() + end);
      if (static_cast<std::int64_t>(buffer.size()) >= buffered) flush();
    }
  }
  flush();
  return crc;
}

}  // namespace

std::string Checkpoints::folder_of(std::int64_t steps) const {
  return (std::filesystem::path{settings_.folder} / checkpoint_name(steps)).string();
}

void Checkpoints::save(const CheckpointState& state, std::int64_t steps) const {
  const std::string folder = folder_of(steps);
  const bool first = settings_.rank == 0;
  if (first) {
    make_folder(folder);
    // Remove the manifest of an earlier run of this step: none may list parts that change.
    const std::string manifest = folder + "/manifest.json";
    std::error_code failed;
    std::filesystem::remove(manifest, failed);
    if (failed) throw OutputError{manifest, failed};
    flush_folder(folder);
    flush_folder(settings_.folder);
    settings_.step("folder made");
  }
  settings_.barrier("checkpoint folder");
  write_part(state, folder);
  settings_.barrier("checkpoint parts");
  if (first) {
    write_manifest(state, folder, steps);
    write_durably((std::filesystem::path{settings_.folder} / "latest").string(),
                  checkpoint_name(steps) + "\n", settings_.step);
    remove_old(steps);
    settings_.step("old removed");
  }
  settings_.barrier("checkpoint saved");
}

void Checkpoints::write_part(const CheckpointState& state, const std::string& folder) const {
  const std::string path = folder + "/" + part_name(settings_.rank);
  const std::int64_t size = hardware::bits(run_.format) / 8;
  Json tiles = Json::array();
  std::int64_t at = 0;
  DurableFile file{path + ".bin"};
  for (const Tile& tile : tiles_of(state.runs, Which::written)) {
    for (const StateKind kind : checkpoint_kinds) {
      const std::uint32_t crc = write_tile(state, kind, tile, size, file);
      tiles.push_back(to_json(StoredTile{.tile = tile, .kind = kind, .at = at, .crc = crc}));
      at += tile.elements() * size;
      settings_.alive();
    }
  }
  file.commit(settings_.step);
  Json index{{"bytes", at}, {"tiles", std::move(tiles)}};
  seal(index);
  write_durably(path + ".json", index.dump(1) + "\n", settings_.step);
}

void Checkpoints::write_manifest(const CheckpointState& state, const std::string& folder,
                                 std::int64_t steps) const {
  Json tensors = Json::array(), parts = Json::array();
  std::vector<std::int64_t> written(run_.tensors.size(), 0);
  for (const StateTensor& each : run_.tensors) {
    tensors.push_back({{"name", each.name}, {"rows", each.rows}, {"columns", each.columns}});
  }
  for (int rank = 0; rank < settings_.ranks; ++rank) {
    const Document index = load_sealed(folder + "/" + part_name(rank) + ".json");
    const PartBounds bounds{.elements = elements(),
                            .element_size = hardware::bits(run_.format) / 8,
                            .bytes = index.root()["bytes"].as<std::int64_t>()};
    for (const StoredTile& each : read_tiles(index, bounds)) {
      written[each.tile.tensor] += each.tile.elements();
    }
    parts.push_back({{"name", part_name(rank)},
                     {"bytes", index.json()["bytes"]},
                     {"index_crc32c", index.json()["crc32c"]}});
  }
  const std::int64_t kinds = std::size(checkpoint_kinds);
  for (std::size_t i = 0; i < written.size(); ++i) {
    ensure(written[i] == kinds * run_.tensors[i].elements(),
           "a checkpoint does not hold every element exactly once");
  }
  Json manifest{{"format", checkpoint_format},
                {"steps", steps},
                {"seed", run_.seed},
                {"model", run_.model},
                {"arithmetic", run_.arithmetic == Arithmetic::ring ? "ring" : "real"},
                {"element", hardware::name(run_.format)},
                {"ranks", settings_.ranks},
                {"tensors", std::move(tensors)},
                {"parts", std::move(parts)}};
  for (const auto& [name, value] : run_.inputs) manifest["inputs"][name] = value;
  if (const auto& scale = state.loss_scale) {
    manifest["loss_scale"] = {
        {"value", scale->value}, {"good", scale->good}, {"skipped", scale->skipped}};
  }
  seal(manifest);
  write_durably(folder + "/manifest.json", manifest.dump(1) + "\n", settings_.step);
}

/// Removes the manifest first, so that what is half removed is no checkpoint. Checkpoints of more
/// steps than this run's were found damaged and do not count.
void Checkpoints::remove_old(std::int64_t steps) const {
  std::vector<std::int64_t> all;
  try {
    all = complete_checkpoints(settings_.folder);
  } catch (const RunFailure& error) {  // what is saved is saved; the next checkpoint tries again
    settings_.note(error.what());
  }
  std::erase_if(all, [&](std::int64_t each) { return each > steps; });
  for (std::size_t i = static_cast<std::size_t>(settings_.keep); i < all.size(); ++i) {
    const std::string folder = folder_of(all[i]);
    std::error_code failed;  // another try comes with the next checkpoint
    std::filesystem::remove(folder + "/manifest.json", failed);
    if (failed) continue;
    flush_folder(folder);
    settings_.step("old manifest removed");
    std::filesystem::remove_all(folder, failed);
  }
}

}  // namespace orrery::executor
