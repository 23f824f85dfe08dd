// Reading a checkpoint, under whatever cut.

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/crc32c.hpp"
#include "executor/checkpoint/parts.hpp"

namespace orrery::executor {

namespace {

/// Bytes of a part as they were written.
class PartFile {
 public:
  explicit PartFile(const std::string& path) : path_{path}, file_{path, std::ios::binary} {
    if (!file_) throw InputError{path_, "is missing or cannot be read"};
  }

  std::vector<std::byte> tile(const StoredTile& stored, std::int64_t size) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(stored.tile.elements() * size));
    file_.seekg(stored.at);
    file_.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file_ || crc32c(bytes.data(), bytes.size()) != stored.crc) {
      throw InputError{path_, "is damaged: its checksum is wrong"};
    }
    return bytes;
  }

 private:
  std::string path_;
  std::ifstream file_;
};

std::string shape_text(std::int64_t rows, std::int64_t columns) {
  return fmt::format("[{}, {}]", rows, columns);
}

}  // namespace

void Checkpoints::require_same_run(const std::string& manifest, const Json& found) const {
  const Document document = Document::from(found, manifest);
  const Node root = document.root();
  const std::string model = root["model"].as<std::string>();
  const auto foreign = [&](const std::string& why) {
    throw InputError{manifest, fmt::format("is of another run ({}): {}", model, why)};
  };
  const std::vector<Node> tensors = root["tensors"].elements();
  for (std::size_t i = 0; i < std::max(tensors.size(), run_.tensors.size()); ++i) {
    if (i >= tensors.size()) foreign(fmt::format("it has no tensor {}", run_.tensors[i].name));
    const std::string name = tensors[i]["name"].as<std::string>();
    if (i >= run_.tensors.size()) foreign(fmt::format("it has a tensor {} besides", name));
    const StateTensor& own = run_.tensors[i];
    if (name != own.name) foreign(fmt::format("it has tensor {} in place of {}", name, own.name));
    const auto rows = tensors[i]["rows"].as<std::int64_t>();
    const auto columns = tensors[i]["columns"].as<std::int64_t>();
    if (rows != own.rows || columns != own.columns) {
      foreign(fmt::format("its {} is {}, here it is {}", name, shape_text(rows, columns),
                          shape_text(own.rows, own.columns)));
    }
  }
  const std::string element = root["element"].as<std::string>();
  const std::string_view here = hardware::name(run_.format);
  if (element != here) foreign(fmt::format("its elements are {}, here they are {}", element, here));
  const std::string arithmetic = run_.arithmetic == Arithmetic::ring ? "ring" : "real";
  if (root["arithmetic"].as<std::string>() != arithmetic) foreign("its arithmetic is another");
  const auto seed = root["seed"].json().get<std::uint64_t>();
  if (seed != run_.seed) foreign(fmt::format("its seed is {}, here it is {}", seed, run_.seed));
}

std::optional<CheckpointFound> Checkpoints::newest() const {
  const std::vector<std::int64_t> all = complete_checkpoints(settings_.folder);
  if (all.empty()) return std::nullopt;
  const std::string path = folder_of(all.front()) + "/manifest.json";
  const Document manifest = load_sealed(path);
  const Node root = manifest.root();
  if (root["format"].as<std::string>() != checkpoint_format) {
    throw InputError{path, fmt::format("expected {}, found {}", checkpoint_format,
                                       root["format"].as<std::string>())};
  }
  require_same_run(path, manifest.json());
  return CheckpointFound{.steps = root["steps"].as<std::int64_t>(),
                         .seed = root["seed"].json().get<std::uint64_t>()};
}

void Checkpoints::restore(const CheckpointState& state, std::int64_t steps) const {
  const std::string folder = folder_of(steps);
  const Document manifest = load_sealed(folder + "/manifest.json");
  const std::int64_t size = hardware::bits(run_.format) / 8;
  std::vector<std::vector<Tile>> wanted(run_.tensors.size());
  std::vector<std::int64_t> missing(run_.tensors.size(), 0);
  for (const Tile& each : tiles_of(state.runs, Which::all)) {
    wanted[each.tensor].push_back(each);
    missing[each.tensor] +=
        each.elements() * static_cast<std::int64_t>(std::size(checkpoint_kinds));
  }
  for (const Node& part : manifest.root()["parts"].elements()) {
    const std::string path = folder + "/" + part["name"].as<std::string>();
    const Document index = load_sealed(path + ".json");
    if (index.json()["crc32c"] != part["index_crc32c"].json()) {
      throw InputError{path + ".json", "is not what the manifest speaks of"};
    }
    PartFile file{path + ".bin"};
    for (const StoredTile& stored : read_tiles(index, wanted.size())) {
      std::vector<std::byte> bytes;  // read where something of it is wanted
      for (const Tile& tile : wanted[stored.tile.tensor]) {
        for_each_overlap(stored.tile, tile, [&](const Overlap& overlap) {
          if (bytes.empty()) bytes = file.tile(stored, size);
          state.load(stored.kind, tile.local + overlap.in_wanted, overlap.count,
                     bytes.data() + overlap.in_stored * size);
          missing[tile.tensor] -= overlap.count;
        });
      }
      alive();
    }
  }
  for (std::size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) continue;
    throw InputError{folder, fmt::format("lacks elements of {}", run_.tensors[i].name)};
  }
  const auto scale = manifest.root().find("loss_scale");
  if (!scale || !state.load_loss_scale) return;
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  state.load_loss_scale({.value = (*scale)["value"].as<double>(),
                         .good = (*scale)["good"].integer(0, most),
                         .skipped = (*scale)["skipped"].integer(0, most)});
}

}  // namespace orrery::executor
