#include "scenarios/validation/runs/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "models/data/data_lane.hpp"
#include "scenarios/report/style.hpp"
#include "sim/output/or_null.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

struct StorageRow {
  std::string run, system, format, accelerator;
  std::int64_t accelerators = 1, hosts = 1;
  double batch = 1, compute = 1, measured = 0, utilisation = 1, threshold = 1;
  double bytes = 0;                      // of a sample
  double stated = 0;                     // samples/s by its own utilisation
  std::optional<double> unseen{};        // samples/s by the other rows of the system
  std::optional<double> unseen_share{};  // utilisation by those

  double of_host() const { return measured * bytes / static_cast<double>(hosts); }
  double stated_error() const { return 100 * (stated / measured - 1); }
  double unseen_error() const { return 100 * (*unseen / measured - 1); }
  bool passes() const { return *unseen_share >= threshold; }
};

double positive_cell(const Row& row, const char* column) {
  const auto value = row.number(column);
  if (!value || !(*value > 0)) row.fail_expected(column, "a number above 0");
  return *value;
}

StorageRow read_storage_row(const Row& row) {
  StorageRow read{.run = std::string{row.text("run")},
                  .system = fmt::format("{} {}", row.text("submitter"), row.text("system")),
                  .format = std::string{row.text("format")},
                  .accelerator = std::string{row.text("accelerator")}};
  const auto count = [&](const char* column) {
    const auto value = row.integer(column);
    if (!value || *value < 1 || *value > 1'000'000) row.fail_expected(column, "a count above 0");
    return *value;
  };
  read.accelerators = count("accelerators");
  read.hosts = count("hosts");
  read.batch = positive_cell(row, "batch");
  read.compute = positive_cell(row, "compute_time_s");
  read.measured = positive_cell(row, "samples_s");
  read.utilisation = positive_cell(row, "au_pct") / 100;
  read.threshold = positive_cell(row, "threshold_pct") / 100;
  try {
    read.bytes = models::data_format(read.format).bytes;
  } catch (const InputError& error) {
    row.fail_expected("format", error.what());
  }
  return read;
}

/// The lane of a row with a store that delivers so many bytes a second to each host.
models::DataAnswer lane_of(const StorageRow& row, double bytes_per_second) {
  models::DataRequest request;
  request.format = row.format;
  request.bytes = request.decoded_bytes = row.bytes;
  request.store.bandwidth = Bandwidth{bytes_per_second * static_cast<double>(row.hosts)};
  request.copy = Bandwidth{1e18};  // no accelerator is there
  const double samples = row.batch * static_cast<double>(row.accelerators);
  return models::data_lane(request,
                           {.nodes = row.hosts,
                            .samples_of_node = samples / static_cast<double>(row.hosts),
                            .samples_of_gpu = row.batch},
                           from_seconds(row.compute));
}

double samples_per_second(const StorageRow& row, const models::DataAnswer& lane) {
  return row.batch * static_cast<double>(row.accelerators) / seconds(lane.step);
}

/// Bytes a second and host of the best other row of the system.
std::optional<double> supply_of(const std::vector<StorageRow>& rows, std::size_t row) {
  double same = 0, any = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i == row || rows[i].system != rows[row].system) continue;
    any = std::max(any, rows[i].of_host());
    if (rows[i].format == rows[row].format) same = std::max(same, rows[i].of_host());
  }
  if (any <= 0) return std::nullopt;
  return same > 0 ? same : any;
}

void predict_rows(std::vector<StorageRow>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    StorageRow& row = rows[i];
    const double ideal = row.batch * static_cast<double>(row.accelerators) / row.compute;
    const double drawn = row.utilisation * ideal * row.bytes / static_cast<double>(row.hosts);
    row.stated = samples_per_second(row, lane_of(row, drawn));
    const auto supply = supply_of(rows, i);
    if (!supply) continue;
    const models::DataAnswer lane = lane_of(row, *supply);
    row.unseen = samples_per_second(row, lane);
    row.unseen_share = lane.utilisation();
  }
}

struct StorageErrors {
  std::size_t rows = 0;
  double median = 0, p90 = 0, worst = 0, within = 0;
};

StorageErrors errors_over(std::vector<double> errors, double close) {
  if (errors.empty()) return {};
  StorageErrors found{.rows = errors.size()};
  for (double& each : errors) {
    each = std::abs(each);
    found.within += each <= close ? 1 : 0;
  }
  found.within *= 100 / static_cast<double>(errors.size());
  found.worst = std::ranges::max(errors);
  found.median = quantile(errors, 0.5);
  found.p90 = quantile(errors, 0.9);
  return found;
}

Json storage_errors_json(const StorageErrors& errors) {
  return {{"rows", errors.rows},
          {"median_abs_error_pct", errors.median},
          {"p90_abs_error_pct", errors.p90},
          {"worst_abs_error_pct", errors.worst},
          {"within_3_pct_of_rows", errors.within}};
}

}  // namespace

bool holds_storage(const Table& table) {
  return table.has("au_pct") && table.has("accelerators");
}

StorageReport compare_storage(const Table& table) {
  table.require({"run", "submitter", "system", "format", "accelerator", "accelerators", "hosts",
                 "batch", "compute_time_s", "samples_s", "au_pct", "threshold_pct"});
  std::vector<StorageRow> rows;
  for (std::size_t i = 0; i < table.size(); ++i) rows.push_back(read_storage_row(table[i]));
  predict_rows(rows);
  constexpr double close = 3;
  std::vector<double> stated, unseen;
  std::size_t passing = 0;
  Json list = Json::array();
  std::vector<const StorageRow*> order;
  for (const StorageRow& row : rows) {
    stated.push_back(row.stated_error());
    if (row.unseen) {
      unseen.push_back(row.unseen_error());
      passing += row.passes() ? 1 : 0;
      order.push_back(&row);
    }
    list.push_back({{"run", row.run},
                    {"system", row.system},
                    {"format", row.format},
                    {"accelerator", row.accelerator},
                    {"accelerators", row.accelerators},
                    {"measured_samples_s", row.measured},
                    {"predicted_samples_s", row.stated},
                    {"error_pct", row.stated_error()},
                    {"unseen_samples_s", or_null(row.unseen)},
                    {"unseen_error_pct", row.unseen ? Json(row.unseen_error()) : Json(nullptr)},
                    {"unseen_utilisation", or_null(row.unseen_share)}});
  }
  const StorageErrors own = errors_over(stated, close), other = errors_over(unseen, close);
  const double passes =
      unseen.empty() ? 0 : 100 * static_cast<double>(passing) / static_cast<double>(unseen.size());
  StorageReport report;
  report.json = {{"kind", "storage"},
                 {"rows", rows.size()},
                 {"given_utilisation", storage_errors_json(own)},
                 {"from_other_rows", storage_errors_json(other)},
                 {"predicted_to_pass_pct", passes},
                 {"runs", std::move(list)}};
  report.text = fmt::format(
      "{} results of MLPerf Storage, samples per second\n"
      "given its utilisation      median error {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %, "
      "{:.0f} % of rows within 3 %\n"
      "from the system's others   median error {:.1f} %, 90th percentile {:.1f} %, worst {:.1f} %, "
      "{} rows of systems with several\n"
      "                           {:.0f} % of them predicted to pass, as all did\n\n",
      rows.size(), own.median, own.p90, own.worst, own.within, other.median, other.p90, other.worst,
      other.rows, passes);
  std::ranges::stable_sort(order, std::greater{},
                           [](const StorageRow* each) { return std::abs(each->unseen_error()); });
  TextTable worst{{"<worst from others", "<format", "<", "n", "measured", "predicted", "error"}};
  for (std::size_t i = 0; i < std::min<std::size_t>(10, order.size()); ++i) {
    const StorageRow& row = *order[i];
    worst.add({row.system.substr(0, 48), row.format, row.accelerator,
               fmt::format("{}", row.accelerators), fmt::format("{:.1f}", row.measured),
               fmt::format("{:.1f}", *row.unseen), fmt::format("{:+.1f} %", row.unseen_error())});
  }
  report.text += worst.text(false);
  return report;
}

}  // namespace orrery::scenarios
