#include <fmt/format.h>

#include "scenarios/comparison/comparison.hpp"
#include "scenarios/report/style.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

std::string milliseconds(Time time) {
  return fmt::format("{:.3f} ms", seconds(time) * 1e3);
}

std::optional<double> ratio(Time predicted, Time measured) {
  if (measured <= Time{}) return std::nullopt;
  return seconds(predicted) / seconds(measured);
}

std::string ratio_text(Time predicted, Time measured) {
  const auto value = ratio(predicted, measured);
  return value ? fmt::format("{:.2f}", *value) : "-";
}

Json json_of(const CriticalPath& path) {
  Json parts = Json::object();
  for (const CriticalPath::Share& part : path.parts) parts[part.kind] = seconds(part.time);
  return {{"operations", path.chain.size()}, {"parts_s", std::move(parts)}};
}

/// Time of a class per rank, averaged over the measured ranks.
std::string per_rank(Time sum, std::int64_t ranks) {
  return milliseconds(Time{sum.count() / std::max<std::int64_t>(ranks, 1)});
}

std::string classes_table(const Comparison& comparison, bool colour) {
  TextTable table{{"<class", "count", "predicted", "measured", "ratio"}};
  for (const ClassComparison& each : comparison.classes) {
    table.add({each.name, std::to_string(each.count), per_rank(each.predicted, comparison.ranks),
               per_rank(each.measured, comparison.ranks),
               ratio_text(each.predicted, each.measured)});
  }
  table.add({"waiting", "", "", per_rank(comparison.waiting, comparison.ranks), ""});
  return table.text(colour);
}

std::string largest_table(const Comparison& comparison, bool colour) {
  TextTable table{{"<block", "<operation", "count", "predicted", "measured", "ratio"}};
  for (const OperationComparison& each : comparison.largest) {
    table.add({each.block, each.name, std::to_string(each.count),
               per_rank(each.predicted, comparison.ranks),
               per_rank(each.measured, comparison.ranks),
               ratio_text(each.predicted, each.measured)});
  }
  return table.text(colour);
}

std::string input_table(const Comparison& comparison, bool colour) {
  TextTable table{{"<stage", "predicted", "measured", "ratio"}};
  const auto shown = [](const std::optional<Time>& time) {
    return time ? milliseconds(*time) : std::string{"-"};
  };
  for (const InputComparison& each : comparison.input) {
    table.add(
        {each.name, shown(each.predicted), shown(each.measured),
         each.predicted && each.measured ? ratio_text(*each.predicted, *each.measured) : "-"});
  }
  return table.text(colour);
}

std::string path_line(std::string_view name, const CriticalPath& path) {
  std::string line = fmt::format("  {:<10}", name);
  for (const CriticalPath::Share& part : path.parts) {
    line += fmt::format(" {} {},", part.kind, milliseconds(part.time));
  }
  line.back() = '\n';
  return line;
}

std::string memory_line(const Comparison& comparison) {
  if (!comparison.predicted_peak || !comparison.measured_peak) return {};
  const auto predicted = static_cast<double>(comparison.predicted_peak->count());
  const auto measured = static_cast<double>(comparison.measured_peak->count());
  return fmt::format("\n  Peak memory   predicted {:.2f} MiB, measured {:.2f} MiB, ratio {:.3f}\n",
                     predicted / 1048576, measured / 1048576, predicted / measured);
}

std::string unmatched_lines(const Comparison& comparison) {
  if (comparison.unmatched() == 0) return "  All operations were matched.\n";
  std::string text;
  const auto some = [&](std::string_view where, const std::vector<std::string>& ids) {
    if (ids.empty()) return;
    text += fmt::format("  {} only {}: {}", ids.size(), where, ids.front());
    text += ids.size() > 1 ? fmt::format(" ... {}\n", ids.back()) : "\n";
  };
  some("predicted", comparison.only_predicted);
  some("measured", comparison.only_measured);
  return text;
}

}  // namespace

Json to_json(const Comparison& comparison) {
  Json classes = Json::array(), largest = Json::array();
  for (const ClassComparison& each : comparison.classes) {
    classes.push_back({{"class", each.name},
                       {"count", each.count},
                       {"predicted_s", seconds(each.predicted)},
                       {"measured_s", seconds(each.measured)},
                       {"ratio", or_null(ratio(each.predicted, each.measured))}});
  }
  for (const OperationComparison& each : comparison.largest) {
    largest.push_back({{"block", each.block},
                       {"operation", each.name},
                       {"class", each.kind},
                       {"count", each.count},
                       {"predicted_s", seconds(each.predicted)},
                       {"measured_s", seconds(each.measured)},
                       {"ratio", or_null(ratio(each.predicted, each.measured))}});
  }
  Json input = Json::array();
  for (const InputComparison& each : comparison.input) {
    input.push_back(
        {{"stage", each.name},
         {"predicted_s", each.predicted ? Json(seconds(*each.predicted)) : Json(nullptr)},
         {"measured_s", each.measured ? Json(seconds(*each.measured)) : Json(nullptr)}});
  }
  return {{"predicted_s", seconds(comparison.predicted)},
          {"measured_s", seconds(comparison.measured)},
          {"ratio", or_null(ratio(comparison.predicted, comparison.measured))},
          {"ranks", comparison.ranks},
          {"classes", std::move(classes)},
          {"waiting_s", seconds(comparison.waiting)},
          {"input", std::move(input)},
          {"largest_differences", std::move(largest)},
          {"critical_path",
           {{"predicted", json_of(comparison.predicted_path)},
            {"measured", json_of(comparison.measured_path)},
            {"part_at", or_null(comparison.paths_part_at)}}},
          {"predicted_peak_memory_bytes", or_null(comparison.predicted_peak)},
          {"measured_peak_memory_bytes", or_null(comparison.measured_peak)},
          {"unmatched", comparison.unmatched()},
          {"only_predicted", comparison.only_predicted},
          {"only_measured", comparison.only_measured}};
}

std::string comparison_report(const Comparison& comparison, bool colour) {
  std::string text = fmt::format(
      "  Step          predicted {}, measured {}, ratio {}\n", milliseconds(comparison.predicted),
      milliseconds(comparison.measured), ratio_text(comparison.predicted, comparison.measured));
  text += memory_line(comparison);
  text += fmt::format("\n{}\n", toned("By class, on one rank", Tone::bold, colour));
  text += classes_table(comparison, colour);
  if (!comparison.input.empty()) {
    text +=
        fmt::format("\n{}\n", toned("Input, on the rank that took longest", Tone::bold, colour));
    text += input_table(comparison, colour);
  }
  text += fmt::format("\n{}\n", toned("Largest differences", Tone::bold, colour));
  text += largest_table(comparison, colour);
  text += fmt::format("\n{}\n", toned("Critical paths", Tone::bold, colour));
  text += path_line("predicted", comparison.predicted_path);
  text += path_line("measured", comparison.measured_path);
  if (comparison.paths_part_at)
    text += fmt::format("  first difference {}\n", *comparison.paths_part_at);
  return text + "\n" + unmatched_lines(comparison);
}

}  // namespace orrery::scenarios
