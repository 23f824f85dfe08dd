// The picture of the page: a log-log scatter of predicted against measured step times, and next to
// it the middle 80 % of signed errors for each value of each facet.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/drawing/svg.hpp"
#include "scenarios/validation/page/page.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* colour_of_the_rest = "#999999";
constexpr std::size_t least_rows_with_a_colour = 5;

/// The stacks with enough runs to get a colour of their own, most runs first.
std::vector<std::string> coloured_stacks(const std::vector<MeasuredRun>& runs,
                                         const std::vector<RunResult>& results) {
  std::map<std::string, std::size_t> counts;
  for (const RunResult& each : results) {
    if (each.scored()) ++counts[runs[each.row].software];
  }
  std::vector<std::pair<std::string, std::size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> stacks;
  for (const auto& [stack, rows] : sorted) {
    if (rows >= least_rows_with_a_colour && stacks.size() < svg_colours.size())
      stacks.push_back(stack);
  }
  return stacks;
}

class Scatter {
 public:
  Scatter(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results, SvgBox box)
      : runs_{runs}, results_{results}, box_{box}, stacks_{coloured_stacks(runs, results)} {
    double shortest = 1e300, longest = 0;
    for (const RunResult& each : results_) {
      if (!each.scored()) continue;
      for (const double value : {*runs_[each.row].step_time, *each.predicted}) {
        shortest = std::min(shortest, value);
        longest = std::max(longest, value);
      }
    }
    low_ = std::floor(std::log10(shortest) * 2) / 2;
    high_ = std::max(low_ + 0.5, std::ceil(std::log10(longest) * 2) / 2);
  }

  std::string svg() const { return frame() + points() + legend(); }

 private:
  double x(double value) const {
    return box_.left + box_.width * (std::log10(value) - low_) / (high_ - low_);
  }
  double y(double value) const {
    return box_.bottom() - box_.height * (std::log10(value) - low_) / (high_ - low_);
  }

  std::string frame() const {
    std::string text;
    for (double power = std::ceil(low_); power <= high_; ++power) {
      const double value = std::pow(10, power);
      const std::string words = fmt::format("{:g} s", value);
      text += svg_line(x(value), box_.top, x(value), box_.bottom(), "stroke='#e3e3e3'");
      text += svg_line(box_.left, y(value), box_.right(), y(value), "stroke='#e3e3e3'");
      text += svg_text(x(value), box_.bottom() + 17, words, "text-anchor='middle'");
      text += svg_text(box_.left - 7, y(value) + 4, words, "text-anchor='end'");
    }
    const double least = std::pow(10, low_), most = std::pow(10, high_);
    text += svg_line(x(least), y(least), x(most), y(most), "stroke='#333'");
    for (const double factor : {1.2, 1 / 1.2}) {
      const double begin = std::max(least, least / factor), end = std::min(most, most / factor);
      text += svg_line(x(begin), y(begin * factor), x(end), y(end * factor),
                       "stroke='#777' stroke-dasharray='4 3'");
    }
    text += svg_rectangle(box_, "fill='none' stroke='#888'");
    text += svg_text(box_.left + box_.width / 2, box_.bottom() + 36, "measured step time",
                     "text-anchor='middle'");
    text += fmt::format(
        "<text text-anchor='middle' transform='translate({:.1f} {:.1f}) rotate(-90)'>predicted "
        "step time</text>\n",
        box_.left - 52, box_.top + box_.height / 2);
    return text;
  }

  std::string points() const {
    std::string text = "<g fill-opacity='0.6'>\n";
    for (const RunResult& each : results_) {
      if (!each.scored()) continue;
      const MeasuredRun& run = runs_[each.row];
      text += svg_circle(x(*run.step_time), y(*each.predicted), 3,
                         fmt::format("fill='{}'", colour_of(run.software)));
    }
    return text + "</g>\n";
  }

  std::string legend() const {
    std::string text;
    double down = box_.top + 18;
    const auto entry = [&](const std::string& name, const char* colour) {
      text += svg_circle(box_.left + 14, down - 4, 4, fmt::format("fill='{}'", colour));
      text += svg_text(box_.left + 24, down, name, "");
      down += 17;
    };
    for (const std::string& stack : stacks_) entry(stack, colour_of(stack));
    entry("others", colour_of_the_rest);
    text += svg_line(box_.left + 8, down - 4, box_.left + 20, down - 4,
                     "stroke='#777' stroke-dasharray='4 3'");
    return text + svg_text(box_.left + 24, down, "a factor 1.2 off", "");
  }

  const char* colour_of(const std::string& stack) const {
    const auto found = std::ranges::find(stacks_, stack);
    return found == stacks_.end() ? colour_of_the_rest
                                  : svg_colours[static_cast<std::size_t>(found - stacks_.begin())];
  }

  const std::vector<MeasuredRun>& runs_;
  const std::vector<RunResult>& results_;
  SvgBox box_;
  std::vector<std::string> stacks_;
  double low_ = 0, high_ = 1;  // powers of ten
};

/// Bars from the 10th to the 90th percentile of signed errors, a dot at their median.
class Spreads {
 public:
  Spreads(const std::vector<MeasuredRun>& runs, const std::vector<RunResult>& results, SvgBox box)
      : facets_{facets_of(runs)}, results_{results}, box_{box} {}

  std::string svg() const {
    std::string rows;
    double down = box_.top;
    for (const Grouping& facet : facets_) {
      down += 8;
      rows += svg_text(box_.left - 8, down + 4, "by " + facet.column,
                       "text-anchor='end' font-weight='bold'");
      down += pitch;
      for (const auto& [value, errors] : errors_by(results_, facet.cells)) {
        rows += row(value.empty() ? "not stated" : value, errors, down);
        down += pitch;
      }
    }
    return axis(down) + rows;
  }

 private:
  static constexpr double pitch = 15;  // pixels from row to row
  static constexpr double edge = 40;   // the axis runs from -40 % to +40 %

  double x(double percent) const {
    return box_.left + box_.width * (std::clamp(percent, -edge, edge) + edge) / (2 * edge);
  }

  std::string axis(double bottom) const {
    std::string text;
    for (double percent = -edge; percent <= edge; percent += 20) {
      text += svg_line(x(percent), box_.top, x(percent), bottom,
                       percent == 0 ? "stroke='#333'" : "stroke='#e3e3e3'");
      text +=
          svg_text(x(percent), bottom + 14, percent == 0 ? "0 %" : fmt::format("{:+g} %", percent),
                   "text-anchor='middle'");
    }
    return text + svg_text(box_.left + box_.width / 2, bottom + 33,
                           "error: the middle 80 % of runs, and their median",
                           "text-anchor='middle'");
  }

  std::string row(const std::string& name, const std::vector<double>& errors, double down) const {
    const double low = quantile(errors, 0.1), high = quantile(errors, 0.9);
    std::string text = svg_text(box_.left - 8, down + 4, name, "text-anchor='end'");
    text += svg_line(x(low), down, x(high), down, "stroke='#1f77b4' stroke-width='3'");
    if (low < -edge) text += svg_text(box_.left - 2, down + 4, "‹", "fill='#1f77b4'");
    if (high > edge) text += svg_text(box_.right() + 1, down + 4, "›", "fill='#1f77b4'");
    text += svg_circle(x(quantile(errors, 0.5)), down, 3.5, "fill='#1b4f72'");
    return text + svg_text(box_.right() + 10, down + 4, fmt::format("{}", errors.size()), "");
  }

  std::vector<Grouping> facets_;
  const std::vector<RunResult>& results_;
  SvgBox box_;
};

}  // namespace

std::string picture_of(const std::vector<MeasuredRun>& runs,
                       const std::vector<RunResult>& results) {
  const bool any =
      std::ranges::any_of(results, [](const RunResult& each) { return each.scored(); });
  constexpr double width = 1160, height = 720;
  if (!any) return svg_document(width, height, svg_text(40, 40, "no run is scored", ""));
  return svg_document(width, height,
                      Scatter{runs, results, {75, 20, 560, 640}}.svg() +
                          Spreads{runs, results, {830, 20, 270, 640}}.svg());
}

}  // namespace orrery::scenarios
