#include "executor/pretrained/pretrained.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "sim/input/document.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t exported_at_once = std::int64_t{1} << 16;  // elements

/// The files that a path stands for.
std::vector<std::string> files_of(const std::string& path) {
  const std::filesystem::path asked{path};
  std::error_code none;
  if (std::filesystem::is_directory(asked, none)) {
    const std::filesystem::path one = asked / "model.safetensors";
    if (std::filesystem::status(one, none).type() != std::filesystem::file_type::not_found) {
      return {one.string()};  // one that cannot be read is refused, not passed over
    }
    return files_of((asked / "model.safetensors.index.json").string());
  }
  if (asked.extension() != ".json") return {path};
  const Document index = Document::load(path);
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.root()["weight_map"].members()) {
    const auto name = file.as<std::string>();
    if (std::filesystem::path{name}.has_parent_path())
      file.fail_expected("a name without a folder");
    names.insert((asked.parent_path() / name).string());
  }
  if (names.empty()) throw InputError{path + ":/weight_map", "lists no file"};
  return {names.begin(), names.end()};
}

/// The name in a checkpoint of a model without its head, where the first component is missing.
std::string without_first_part(const std::string& name) {
  return name.substr(name.find('.') + 1);
}

/// Visits what elements [first, first + count) of our tensor have in common with a part of theirs,
/// a piece of a row at a time: `visit(row, column, count, offset in the elements)`.
template <class Visit>
void for_each_piece(const StateTensor& tensor, const StoredPart& part, std::int64_t first,
                    std::int64_t count, Visit visit) {
  const std::int64_t columns = tensor.columns, end = first + count;
  const std::int64_t last_row = std::min(part.row + part.row_count, (end - 1) / columns + 1);
  for (std::int64_t r = std::max(part.row, first / columns); r < last_row; ++r) {
    const std::int64_t low = std::max(first - r * columns, part.column);
    const std::int64_t high = std::min(end - r * columns, part.column + part.column_count);
    if (low < high) visit(r, low, high - low, r * columns + low - first);
  }
}

std::vector<std::int64_t> shape_of(const StoredPart& part) {
  if (!part.shape.empty()) return part.shape;
  if (part.vector) return {part.columns};
  return {part.rows, part.columns};
}

}  // namespace

PretrainedWeights::PretrainedWeights(const std::string& path, models::Model model)
    : path_{path}, model_{std::move(model)} {
  for (const std::string& each : files_of(path)) files_.emplace_back(each);
}

PretrainedWeights::Found PretrainedWeights::find(const StoredPart& part) const {
  for (const std::string& name : {part.tensor, without_first_part(part.tensor), part.once}) {
    for (const SafetensorsFile& file : files_) {
      const auto found = file.tensors().find(name);
      if (found == file.tensors().end()) continue;
      if (found->second.shape != shape_of(part)) {
        throw InputError{file.path(), fmt::format("{} is [{}], in the model it is [{}]", name,
                                                  fmt::join(found->second.shape, ", "),
                                                  fmt::join(shape_of(part), ", "))};
      }
      return {part, &file, &found->second};
    }
  }
  for (const SafetensorsFile& file : files_) {
    const auto& others = file.others();
    if (std::find(others.begin(), others.end(), part.tensor) == others.end()) continue;
    throw InputError{file.path(), part.tensor +
                                      " is in a format that cannot be read; known: F64 "
                                      "F32 BF16 F16"};
  }
  throw InputError{path_, "has no tensor " + part.tensor};
}

void PretrainedWeights::require(const std::vector<StateTensor>& tensors) {
  for (const StateTensor& tensor : tensors) {
    std::vector<Found>& found = parts_[tensor.name];
    for (const StoredPart& each : stored_parts(model_, tensor, "--init")) {
      found.push_back(find(each));
    }
  }
}

void PretrainedWeights::fill(const StateTensor& tensor, std::int64_t first,
                             std::span<double> to) const {
  for (const Found& each : parts_.at(tensor.name)) {
    for_each_piece(
        tensor, each.part, first, std::ssize(to),
        [&](std::int64_t row, std::int64_t column, std::int64_t count, std::int64_t offset) {
          each.file->read(*each.tensor, each.part.element(row, column), count, each.part.stride(),
                          to.data() + offset);
        });
  }
}

namespace {

using Named = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// Names and shapes of their tensors, in the order in which ours refer to them.
Named stored_tensors(const models::Model& model, const std::vector<StateTensor>& tensors) {
  Named named;
  std::set<std::string> known;
  for (const StateTensor& tensor : tensors) {
    for (const StoredPart& each : stored_parts(model, tensor, "--export")) {
      if (known.insert(each.tensor).second) named.emplace_back(each.tensor, shape_of(each));
    }
  }
  return named;
}

}  // namespace

PretrainedExport::PretrainedExport(std::string path, const models::Model& model,
                                   models::DType format, const std::vector<StateTensor>& tensors)
    : writer_{std::move(path), format, stored_tensors(model, tensors)} {
  for (const StateTensor& each : tensors) {
    parts_.push_back(stored_parts(model, each, "--export"));
  }
}

PretrainedExport::~PretrainedExport() {
  if (pending_) writer_.discard();
}

std::string PretrainedExport::create() {
  std::string created = writer_.create();
  pending_ = true;
  return created;
}

void PretrainedExport::write(const std::string& created, const ExportedState& state) {
  writer_.open(created);
  for (const StateRun& run : state.runs) {
    if (run.writer) write_run(state, run);
  }
  writer_.close();
}

void PretrainedExport::write_run(const ExportedState& state, const StateRun& run) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < run.count; i += exported_at_once) {
    const std::int64_t count = std::min(exported_at_once, run.count - i);
    values.resize(static_cast<std::size_t>(count));
    state.read(run.local + i, values);
    for (const StoredPart& each : parts_[state.first + run.tensor]) {
      for_each_piece(
          state.tensors[run.tensor], each, run.offset + i, count,
          [&](std::int64_t row, std::int64_t column, std::int64_t run_of, std::int64_t offset) {
            writer_.write(each.tensor, each.element(row, column), run_of, each.stride(),
                          values.data() + offset);
          });
    }
  }
}

void PretrainedExport::commit() {
  writer_.commit();
  pending_ = false;
}

}  // namespace orrery::executor
