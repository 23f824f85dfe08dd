#include "models/prediction/error/published_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/embedded.hpp"
#include "sim/errors.hpp"
#include "sim/input/document.hpp"

namespace orrery::models {

namespace {

constexpr std::string_view record_file = "models/prediction/published_errors.json";
constexpr std::int64_t most_rows = 1'000'000;

StepErrors read_steps(const Node& node) {
  return {.rows = node["rows"].integer(1, most_rows),
          .median_pct = node["median_abs_error_pct"].as<double>(),
          .p90_pct = node["p90_abs_error_pct"].as<double>(),
          .bias_pct = node["bias_pct"].as<double>()};
}

Ordering read_ordering(const Node& node) {
  return {.pairs_in_order = node["pairs_in_order_pct"].as<double>(),
          .mean_regret = node["mean_regret_pct"].as<double>(),
          .plan_spread = node["plan_spread_pct"].as<double>(),
          .gap_of_alike = node["gap_of_alike_pct"].as<double>(),
          .gap_of_others = node["gap_of_others_pct"].as<double>()};
}

RunGroup read_group(const Node& node) {
  RunGroup group;
  for (const Node& each : node["kinds"].elements()) {
    group.run.kinds.push_back(each.word(run_kind_words));
  }
  if (group.run.kinds.empty()) node["kinds"].fail_expected("at least one kind");
  group.run.stack = node["stack"].as<std::string>();
  group.run.gpu = node["gpu"].as<std::string>();
  group.run.year = static_cast<int>(node["year"].integer(0, 2100));
  group.rows = node["rows"].integer(1, most_rows);
  group.groups = node["groups"].integer(1, most_rows);
  return group;
}

RangeRecord read_ranges(const Node& node) {
  RangeRecord ranges;
  for (const auto& [kind, word] : run_kind_words) {
    const Node spread = node["kinds"][std::string{word}];
    ranges.kinds[kind] = {.rows = spread["rows"].integer(0, most_rows),
                          .groups = spread["groups"].integer(0, most_rows),
                          .between = spread["between"].as<double>(),
                          .within = spread["within"].as<double>(),
                          .groups_behind = spread["groups_behind"].integer(1, most_rows)};
  }
  for (const auto& [step, word] : range_step_words) {
    ranges.steps.at(static_cast<std::size_t>(step)) = node["steps"][std::string{word}].as<double>();
  }
  ranges.unseen_low = node["unseen_low"].as<double>();
  ranges.unseen_high = node["unseen_high"].as<double>();
  for (const Node& each : node["groups"].elements()) ranges.groups.push_back(read_group(each));
  return ranges;
}

PublishedErrors read_record(const Node& node) {
  PublishedErrors record;
  record.source = node["source"].as<std::string>();
  record.dense = read_steps(node["dense"]);
  record.fitted = read_ordering(node["fitted"]);
  record.unfitted = read_ordering(node["unfitted"]);
  record.sharded = read_steps(node["sharded"]);
  record.ranges = read_ranges(node["ranges"]);
  for (const auto& [peak, highest] : node["highest_mfu"].members()) {
    record.highest_mfu[peak] = {.mfu = highest["mfu"].as<double>(),
                                .rows = highest["rows"].integer(1, most_rows),
                                .run = highest["run"].as<std::string>()};
  }
  const Node memory = node["memory"];
  record.memory_rows = memory["rows"].integer(1, most_rows);
  record.memory_median_pct = memory["median_abs_error_pct"].as<double>();
  record.memory_ranges = read_ranges(memory["ranges"]);
  return record;
}

}  // namespace

const PublishedErrors& published_errors() {
  static const PublishedErrors record = [] {
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.path != record_file) continue;
      const Document document = Document::parse(file.text, std::string{file.path});
      return read_record(document.root());
    }
    throw ContractError{"the record of published errors is not built in"};
  }();
  return record;
}

std::string size_and_peak(std::int64_t parameters, const std::string& gpu,
                          hardware::DType products) {
  constexpr std::int64_t ten_billion = 10'000'000'000;
  const char* size = parameters >= 10 * ten_billion ? "100 billion parameters and more"
                     : parameters >= ten_billion    ? "10 to 100 billion parameters"
                                                    : "fewer than 10 billion parameters";
  return fmt::format("models of {} on {} in {} bits", size, gpu, hardware::bits(products));
}

}  // namespace orrery::models
