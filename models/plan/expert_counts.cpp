#include "models/plan/expert_counts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/input/document.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

constexpr std::size_t largest_counts = std::size_t{64} << 20;
constexpr std::int64_t most_tokens = std::int64_t{1} << 48;

bool is_json(std::string_view name) {
  return name.ends_with(".json");
}

std::int64_t count_of(std::string_view cell, const std::string& where) {
  const auto value = number_in<std::int64_t>(cell);
  if (value && *value >= 0 && *value <= most_tokens) return *value;
  throw InputError{where, fmt::format("expected a count of tokens for each expert, found '{}'",
                                      printable(cell, 40))};
}

/// Checks each layer as it is added.
class Layers {
 public:
  void add(std::vector<std::int64_t> counts, const std::string& where) {
    if (!read_.layers.empty() && std::ssize(counts) != read_.experts()) {
      throw InputError{where,
                       fmt::format("expected counts of {} experts as in the layer before, found {}",
                                   read_.experts(), counts.size())};
    }
    if (std::ranges::all_of(counts, [](std::int64_t each) { return each == 0; })) {
      throw InputError{where, "expected tokens on at least one expert, found none"};
    }
    read_.layers.push_back(std::move(counts));
  }
  ExpertCounts all(const std::string& name) && {
    if (!read_.layers.empty()) return std::move(read_);
    throw InputError{name, "expected a line of counts for each layer, found none"};
  }

 private:
  ExpertCounts read_;
};

ExpertCounts from_csv(std::string_view text, const std::string& name) {
  Layers layers;
  require_text(text, name);
  std::size_t number = 0;
  for (const std::string_view each : split(text, '\n')) {
    ++number;
    const std::string_view line = trimmed(each);
    if (line.empty()) continue;
    const std::string where = fmt::format("{}:line {}", name, number);
    std::vector<std::int64_t> counts;
    for (const std::string_view cell : split(line, ',')) {
      counts.push_back(count_of(trimmed(cell), where));
    }
    layers.add(std::move(counts), where);
  }
  return std::move(layers).all(name);
}

std::vector<std::int64_t> counts_of(const Node& list) {
  std::vector<std::int64_t> counts;
  for (const Node& each : list.elements()) counts.push_back(each.integer(0, most_tokens));
  if (counts.empty()) list.fail_expected("a count of tokens for each expert");
  return counts;
}

ExpertCounts from_json(std::string_view text, const std::string& name) {
  Layers layers;
  const Document document = Document::parse(text, name);
  const Node root = document.root();
  if (!root.is_array() || root.elements().empty()) {
    root.fail_expected("a list of counts, or one such list for each layer");
  }
  if (!root.elements().front().is_array()) {
    layers.add(counts_of(root), root.place());
  } else {
    for (const Node& layer : root.elements()) {
      if (!layer.is_array()) layer.fail_expected("a list of counts");
      layers.add(counts_of(layer), layer.place());
    }
  }
  return std::move(layers).all(name);
}

}  // namespace

std::vector<double> ExpertCounts::imbalances(std::int64_t ranks) const {
  const std::int64_t each = experts() / ranks;
  std::vector<double> found;
  for (const std::vector<std::int64_t>& counts : layers) {
    std::int64_t most = 0, all = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto first = counts.begin() + rank * each;
      const std::int64_t taken = std::accumulate(first, first + each, std::int64_t{0});
      most = std::max(most, taken);
      all += taken;
    }
    found.push_back(static_cast<double>(most * ranks) / static_cast<double>(all));
  }
  return found;
}

ExpertCounts load_expert_counts(const std::string& path) {
  return parse_expert_counts(read_file(path, largest_counts), path);
}

ExpertCounts parse_expert_counts(std::string_view text, const std::string& name) {
  return is_json(name) ? from_json(text, name) : from_csv(text, name);
}

}  // namespace orrery::models
