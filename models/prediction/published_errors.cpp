#include "models/prediction/published_errors.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/embedded.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

constexpr std::string_view record_file = "models/prediction/published_errors.json";
constexpr std::int64_t most_rows = 1'000'000;
constexpr std::size_t percentiles = 101;
/// Fewer runs than this say little about a stack.
constexpr std::int64_t least_rows_of_a_stack = 10;

StepErrors read_steps(const Node& node) {
  return {.rows = node["rows"].integer(1, most_rows),
          .median_pct = node["median_abs_error_pct"].as<double>(),
          .p90_pct = node["p90_abs_error_pct"].as<double>(),
          .bias_pct = node["bias_pct"].as<double>(),
          .log_p10 = node["log_p10"].as<double>(),
          .log_p90 = node["log_p90"].as<double>()};
}

Ordering read_ordering(const Node& node) {
  return {.pairs_in_order = node["pairs_in_order_pct"].as<double>(),
          .mean_regret = node["mean_regret_pct"].as<double>(),
          .plan_spread = node["plan_spread_pct"].as<double>(),
          .gap_of_alike = node["gap_of_alike_pct"].as<double>(),
          .gap_of_others = node["gap_of_others_pct"].as<double>()};
}

PublishedErrors read_record(const Node& node) {
  PublishedErrors record;
  record.source = node["source"].as<std::string>();
  record.dense = read_steps(node["dense"]);
  record.fitted = read_ordering(node["fitted"]);
  record.unfitted = read_ordering(node["unfitted"]);
  record.sharded = read_steps(node["sharded"]);
  for (const auto& [profile, errors] : node["sharded_by_profile"].members()) {
    record.sharded_by_profile[profile] = read_steps(errors);
  }
  for (const auto& [peak, highest] : node["highest_mfu"].members()) {
    record.highest_mfu[peak] = {.mfu = highest["mfu"].as<double>(),
                                .rows = highest["rows"].integer(1, most_rows),
                                .run = highest["run"].as<std::string>()};
  }
  const Node memory = node["memory"];
  record.memory_rows = memory["rows"].integer(1, most_rows);
  record.memory_median_pct = memory["median_abs_error_pct"].as<double>();
  for (const Node& each : memory["log_percentiles"].elements()) {
    record.memory_percentiles.push_back(each.as<double>());
  }
  const std::vector<double>& curve = record.memory_percentiles;
  if (curve.size() != percentiles || !std::ranges::is_sorted(curve)) {
    memory["log_percentiles"].fail_expected("101 rising numbers");
  }
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

ShardedErrors sharded_errors_of(const Software& software) {
  const PublishedErrors& record = published_errors();
  const auto own = record.sharded_by_profile.find(software.name);
  const bool enough =
      own != record.sharded_by_profile.end() && own->second.rows >= least_rows_of_a_stack;
  return enough ? ShardedErrors{own->second, true} : ShardedErrors{record.sharded, false};
}

}  // namespace orrery::models
