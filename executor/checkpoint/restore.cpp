// Reads a checkpoint, under any sharding.

#include <fmt/format.h>

#include <limits>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/parts.hpp"

namespace orrery::executor {

namespace {

/// A checkpoint that is complete, but of another run.
class ForeignCheckpoint : public InputError {
 public:
  using InputError::InputError;
};

std::uint64_t seed_of(const Node& manifest) {
  const Node seed = manifest["seed"];
  if (!seed.json().is_number_unsigned()) seed.fail_expected("a whole number");
  return seed.json().get<std::uint64_t>();
}

std::string shape_text(std::int64_t rows, std::int64_t columns) {
  return fmt::format("[{}, {}]", rows, columns);
}

}  // namespace

void Checkpoints::require_same_run(const std::string& manifest, const Json& found) const {
  const Document document = Document::from(found, manifest);
  const Node root = document.root();
  const std::string model = root["model"].as<std::string>();
  const auto foreign = [&](const std::string& why) {
    throw ForeignCheckpoint{manifest, fmt::format("is of another run ({}): {}", model, why)};
  };
  const std::vector<Node> tensors = root["tensors"].elements();
  for (std::size_t i = 0; i < std::max(tensors.size(), run_.tensors.size()); ++i) {
    if (i >= tensors.size()) foreign(fmt::format("it has no tensor {}", run_.tensors[i].name));
    const std::string name = tensors[i]["name"].as<std::string>();
    if (i >= run_.tensors.size()) foreign(fmt::format("it has an additional tensor {}", name));
    const StateTensor& own = run_.tensors[i];
    if (name != own.name) foreign(fmt::format("it has tensor {} in place of {}", name, own.name));
    const auto rows = tensors[i]["rows"].as<std::int64_t>();
    const auto columns = tensors[i]["columns"].as<std::int64_t>();
    if (rows != own.rows || columns != own.columns) {
      foreign(fmt::format("its {} is {}, in this run it is {}", name, shape_text(rows, columns),
                          shape_text(own.rows, own.columns)));
    }
  }
  const std::string element = root["element"].as<std::string>();
  const std::string_view here = hardware::name(run_.format);
  if (element != here)
    foreign(fmt::format("its elements are {}, in this run they are {}", element, here));
  const std::string arithmetic = run_.arithmetic == Arithmetic::ring ? "ring" : "real";
  if (root["arithmetic"].as<std::string>() != arithmetic) foreign("its arithmetic differs");
  const std::uint64_t seed = seed_of(root);
  if (seed != run_.seed)
    foreign(fmt::format("its seed is {}, in this run it is {}", seed, run_.seed));
}

/// Compares the checkpoint's inputs with this run's. Inputs that a checkpoint of an older orrery
/// does not state are not compared.
void Checkpoints::require_same_inputs(const Node& root) const {
  const auto found = root.find("inputs");
  if (!found) return;
  for (const auto& [name, here] : run_.inputs) {
    const auto there = found->find(name);
    if (!there || there->json() == here) continue;
    const std::string what =
        fmt::format("{} was {}, in this run it is {}", name, there->as<std::string>(), here);
    if (run_.changed == Changed::refused) {
      throw InputError{root.file(), what + "; use --resume changed to resume anyway"};
    }
    settings_.note(fmt::format("{}: {}", root.file(), what));
  }
}

std::vector<std::int64_t> Checkpoints::elements() const {
  std::vector<std::int64_t> all;
  for (const StateTensor& each : run_.tensors) all.push_back(each.elements());
  return all;
}

/// Why a run cannot resume from a checkpoint, judged by names and sizes; empty: it can.
std::string Checkpoints::damage_of(std::int64_t steps) const {
  const std::string folder = folder_of(steps);
  try {
    const Document manifest = load_sealed(folder + "/manifest.json");
    require_same_run(manifest.name(), manifest.json());
    const std::int64_t size = hardware::bits(run_.format) / 8;
    for (const Node& each : manifest.root()["parts"].elements()) {
      open_part(folder, each, elements(), size);
    }
    return {};
  } catch (const ForeignCheckpoint&) {
    throw;
  } catch (const InputError& error) {
    return error.what();
  }
}

std::optional<CheckpointFound> Checkpoints::newest(std::int64_t before) const {
  std::string newest_damage;
  for (const std::int64_t steps : complete_checkpoints(settings_.folder)) {
    if (steps >= before) continue;
    const std::string damage = damage_of(steps);
    if (damage.empty()) {
      const Document manifest = load_manifest(folder_of(steps));
      const Node root = manifest.root();
      require_same_inputs(root);
      return CheckpointFound{.steps = steps, .seed = seed_of(root)};
    }
    settings_.note(damage);
    if (newest_damage.empty()) newest_damage = damage;
  }
  if (!newest_damage.empty()) throw InputError{newest_damage};
  return std::nullopt;
}

void Checkpoints::restore(const CheckpointState& state, std::int64_t steps) const {
  const std::string folder = folder_of(steps);
  const Document manifest = load_manifest(folder);
  const std::int64_t size = hardware::bits(run_.format) / 8;
  std::vector<std::vector<Tile>> wanted(run_.tensors.size());
  std::vector<std::int64_t> missing(run_.tensors.size(), 0);
  for (const Tile& each : tiles_of(state.runs, Which::all)) {
    wanted[each.tensor].push_back(each);
    missing[each.tensor] +=
        each.elements() * static_cast<std::int64_t>(std::size(checkpoint_kinds));
  }
  for (const Node& part : manifest.root()["parts"].elements()) {
    const CheckpointPart known = open_part(folder, part, elements(), size);
    PartFile file{known.path + ".bin"};
    for (const StoredTile& stored : known.tiles) {
      std::vector<std::byte> bytes;  // read only if some of it is wanted
      for (const Tile& tile : wanted[stored.tile.tensor]) {
        for_each_overlap(stored.tile, tile, [&](const TileOverlap& overlap) {
          if (bytes.empty()) bytes = file.tile(stored, size);
          state.load(stored.kind, tile.local + overlap.in_wanted, overlap.count,
                     bytes.data() + overlap.in_stored * size);
          missing[tile.tensor] -= overlap.count;
        });
      }
      settings_.alive();
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
