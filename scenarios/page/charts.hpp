#pragma once
// Pictures of a report page as SVG inside HTML: colours are variables of the page's style sheet, so
// that they follow the light or dark theme and print. Lengths begin at zero. All texts are escaped.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Classes of work and of memory with their colours in the light and the dark theme.
struct PageColour {
  std::string_view name;  // as documents write it: "gemm", "forward"
  std::string_view label;
  std::string_view light, dark;
};
const std::vector<PageColour>& page_colours();
/// "var(--gemm)"; grey for what is not listed.
std::string colour_of(std::string_view name);
std::string label_of(std::string_view name);

/// "10.50 s", "12.3 ms".
std::string time_words(double seconds);
std::string size_words(double bytes);
std::string dollar_words(double dollars);
std::string days_in_words(double days);
/// A share: "35.4 %", "50 %".
std::string percent_words(double share);
/// "1,234,567".
std::string count_words(double count);

struct ChartBar {
  std::string label;
  double value = 0;
  std::string colour;  // of CSS
};

/// From the first part to the sum of all, part by part; parts below zero go to the left.
std::string waterfall_chart(const std::vector<std::pair<std::string, double>>& parts);

/// One bar from zero cut into parts, with a legend; optionally a limit and a range of its whole.
struct StackedChart {
  std::vector<ChartBar> parts;
  std::string (*words)(double) = count_words;
  std::optional<double> limit{};
  std::string limit_label{};
  std::optional<std::pair<double, double>> range{};
};
std::string stacked_chart(const StackedChart& chart);

/// Bars from zero under one another, each cut into the same parts; one legend for all.
struct PartedBar {
  std::string label;
  std::vector<double> parts;  // as many as the chart has classes
};
struct PartedChart {
  std::vector<ChartBar> classes;  // labels and colours
  std::vector<PartedBar> bars;
  std::string (*words)(double) = count_words;
};
std::string parted_chart(const PartedChart& chart);

/// Bars of differences: to the right of zero what is more, to the left what is less.
std::string difference_chart(const std::vector<ChartBar>& bars, std::string (*words)(double));

/// Ranges on one axis from zero: a band from p10 to p90 and a mark at p50.
struct ChartRange {
  std::string label;
  double p10 = 0, p50 = 0, p90 = 0;
};
struct RangeChart {
  std::vector<ChartRange> ranges;
  std::string (*words)(double) = count_words;
  std::optional<double> mark{};  // a vertical line: a deadline, a measured step
  std::string mark_label{};
};
std::string range_chart(const RangeChart& chart);

/// Bars from zero, one a row.
std::string bar_chart(const std::vector<ChartBar>& bars, std::string (*words)(double));

/// Points with ranges in both directions, both axes from zero. Ranges of the best are drawn; those
/// of the others are in their hints. Axes end where the best and the limits do, with room around
/// them; how many points lie beyond is said below the picture.
struct ScatterPoint {
  std::string label;
  ChartRange x, y;
  bool best = false;  // no other is better in both
};
struct ScatterChart {
  std::vector<ScatterPoint> points;
  std::string x_title, y_title;
  std::string (*x_words)(double) = count_words;
  std::string (*y_words)(double) = count_words;
  std::optional<double> most_x{}, most_y{};  // limits, drawn as lines
};
std::string scatter_chart(const ScatterChart& chart);

/// The timeline of a simulated step (scenarios/page/step_document.hpp), memory below each stage.
/// Errors  not such a timeline: InputError
std::string timeline_chart(const Node& timeline, double step, double available);

/// Nodes, GPUs, NVLink, NICs and the fabric, each with the share of the step in which it is busy.
struct LoadChart {
  std::string gpu, fabric;
  double nodes = 1, gpus_per_node = 1, nics_per_node = 0;
  double sm = 0, nvlink = 0, nic = 0;
  double links_over_capacity = 0;
};
std::string load_chart(const LoadChart& load);

}  // namespace orrery::scenarios
