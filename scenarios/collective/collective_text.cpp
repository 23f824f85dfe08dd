#include <fmt/format.h>

#include "scenarios/collective/collective_request.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

double algorithm_bandwidth(const CollectiveRow& row) {
  const double time = seconds(row.price.time);
  return time > 0 ? static_cast<double>(row.size.count()) / time : 0;
}

double error_percent(const CollectiveRow& row) {
  return 100 * (ratio(row.price.time, *row.measured) - 1);
}

std::string figure(double value, int decimals) {
  return fmt::format("{:.{}f}", value, decimals);
}

/// Microseconds as nccl-tests prints them: two decimals below 1000, else one.
std::string microseconds_of(Time time) {
  const double value = seconds(time) * 1e6;
  return figure(value, value < 1000 ? 2 : 1);
}

Json json_of(const CollectiveRow& row, const CollectiveReport& answer) {
  const double algorithm = algorithm_bandwidth(row);
  Json json{
      {"bytes", row.size.count()},
      {"time_s", seconds(row.price.time)},
      {"algbw_bytes_per_s", algorithm},
      {"busbw_bytes_per_s", algorithm * models::bus_factor(answer.operation, answer.group.ranks)},
      {"algorithm", or_null(std::string{row.price.algorithm})},
      {"protocol", row.price.protocol ? Json(models::name(*row.price.protocol)) : Json(nullptr)},
      {"channels", row.price.channels > 0 ? Json(row.price.channels) : Json(nullptr)},
      {"flows", row.price.flows > 0 ? Json(row.price.flows) : Json(nullptr)},
      {"latency_s", seconds(row.price.latency)},
      {"limited_by", row.price.limited_by},
      {"transfers", row.run ? Json(row.run->transfers) : Json(nullptr)},
      {"events", row.run ? Json(row.run->events) : Json(nullptr)},
      {"peak_memory_bytes", row.run ? Json(row.run->memory.count()) : Json(nullptr)}};
  if (row.measured) {
    json["measured_s"] = seconds(*row.measured);
    json["error_pct"] = error_percent(row);
  }
  return json;
}

Json json_of(const ExplainingConstants& constants) {
  Json siblings = Json::array();
  for (const auto& each : constants.siblings) {
    siblings.push_back({{"operation", each.operation},
                        {"points", each.points},
                        {"median_abs_error_pct", each.median_error}});
  }
  return {{"latency_s", seconds(constants.latency)},
          {"busbw_bytes_per_s", constants.bus.count()},
          {"median_abs_error_pct", constants.median_error},
          {"siblings", siblings}};
}

std::string constants_text(const ExplainingConstants& constants) {
  std::string text = fmt::format(
      "  the log's all-reduces are explained by a latency of {} and a bus bandwidth of {}: "
      "median error {:.1f} %\n",
      format(constants.latency), format(constants.bus), constants.median_error);
  for (const auto& each : constants.siblings) {
    text += fmt::format(
        "  with the same latency and bandwidth, its {} times of {}: median error {:.1f} %\n",
        each.points, each.operation, each.median_error);
  }
  return text;
}

std::string header_of(const CollectiveReport& answer) {
  return fmt::format("{} of {} ranks on {} node{} of {}, network {}\n",
                     models::name(answer.operation), answer.group.ranks, answer.group.nodes,
                     answer.group.nodes == 1 ? "" : "s", answer.cluster,
                     word_of(network_form_words, answer.network));
}

/// The optional columns of the table.
struct ShownColumns {
  bool measured = false, runs = false;
};

TextTable table_of(ShownColumns shown) {
  std::vector<TextTable::Column> columns{"size (B)", "time (us)", "algbw (GB/s)", "busbw (GB/s)"};
  if (shown.measured) columns.insert(columns.end(), {"measured (us)", "error %"});
  columns.insert(columns.end(),
                 {"<algorithm", "<protocol", "channels", "latency (us)", "<limited by"});
  if (shown.runs) columns.insert(columns.end(), {"transfers", "events", "memory"});
  return TextTable{columns};
}

std::vector<std::string> row_cells(const CollectiveRow& row, double bus_factor,
                                   ShownColumns shown) {
  const models::CollectiveTime& price = row.price;
  const double bandwidth = algorithm_bandwidth(row) / 1e9;
  std::vector<std::string> cells{fmt::format("{}", row.size.count()), microseconds_of(price.time),
                                 figure(bandwidth, 2), figure(bandwidth * bus_factor, 2)};
  if (shown.measured) {
    cells.push_back(row.measured ? microseconds_of(*row.measured) : "");
    cells.push_back(row.measured ? fmt::format("{:+.1f}", error_percent(row)) : "");
  }
  cells.insert(cells.end(), {std::string{price.algorithm},
                             price.protocol ? std::string{models::name(*price.protocol)} : "",
                             price.channels > 0 ? fmt::format("{}", price.channels) : "",
                             microseconds_of(price.latency), std::string{price.limited_by}});
  if (!shown.runs) return cells;
  const models::NetworkRun run = row.run.value_or(models::NetworkRun{});
  cells.insert(cells.end(), {fmt::format("{}", run.transfers), fmt::format("{}", run.events),
                             format(run.memory)});
  return cells;
}

}  // namespace

Json to_json(const CollectiveReport& answer, bool timing) {
  Json rows = Json::array();
  for (const CollectiveRow& row : answer.rows) rows.push_back(json_of(row, answer));
  Json json{{"cluster", answer.cluster},
            {"operation", models::name(answer.operation)},
            {"ranks", answer.group.ranks},
            {"nodes", answer.group.nodes},
            {"network", word_of(network_form_words, answer.network)},
            {"rows", rows},
            {"explained_by", nullptr},
            {"assumptions", answer.assumptions}};
  if (answer.constants) json["explained_by"] = json_of(*answer.constants);
  if (timing) {
    json["wall_time_s"] = {{"load", answer.load_seconds}, {"simulate", answer.simulate_seconds}};
  }
  return json;
}

std::string text_of(const CollectiveReport& answer, bool timing, bool colour) {
  ShownColumns shown{.runs = answer.network != NetworkForm::fixed};
  for (const CollectiveRow& row : answer.rows) {
    shown.measured = shown.measured || row.measured.has_value();
  }
  TextTable table = table_of(shown);
  const double factor = models::bus_factor(answer.operation, answer.group.ranks);
  for (const CollectiveRow& row : answer.rows) table.add(row_cells(row, factor, shown));
  std::string text = header_of(answer) + table.text(colour);
  text +=
      "  latency: hops, fixed costs and the ramp (protocols and pipelines that are not yet full);\n"
      "  limited by: the largest term of the cost model\n";
  if (answer.constants) text += constants_text(*answer.constants);
  for (const std::string& each : answer.assumptions) text += fmt::format("  {}\n", each);
  if (timing) {
    text += fmt::format("  loaded in {:.3g} s, simulated in {:.3g} s\n", answer.load_seconds,
                        answer.simulate_seconds);
  }
  return text;
}

}  // namespace orrery::scenarios
