// The picture of `orrery scale`: a bar of step time by class per number of GPUs, and the scaling
// efficiency.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/drawing/svg.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/scaling/scaling.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox bars_box{70, 50, 560, 400};
constexpr SvgBox efficiency_box{840, 50, 380, 400};

std::vector<const ScalingPoint*> predicted_points(const ScalingReport& report) {
  std::vector<const ScalingPoint*> points;
  for (const ScalingPoint& each : report.points) {
    if (each.refused.empty()) points.push_back(&each);
  }
  return points;
}

class Bars {
 public:
  explicit Bars(const std::vector<const ScalingPoint*>& points) : points_{points} {
    for (const ScalingPoint* each : points_) most_ = std::max(most_, seconds(each->step));
  }

  std::string svg() const {
    std::string text =
        svg_text(bars_box.left, 32, "where the step goes, slowest rank", "font-weight='bold'");
    const double tick = svg_tick(most_);
    for (double at = 0; at <= most_ * 1.0001; at += tick) {
      text += svg_line(bars_box.left, y(at), bars_box.right(), y(at), "stroke='#e3e3e3'");
      text +=
          svg_text(bars_box.left - 7, y(at) + 4, fmt::format("{:g} s", at), "text-anchor='end'");
    }
    for (std::size_t i = 0; i < points_.size(); ++i) text += bar(i);
    return text + legend();
  }

 private:
  double y(double value) const { return bars_box.bottom() - bars_box.height * value / most_; }
  double pitch() const { return bars_box.width / static_cast<double>(points_.size()); }

  std::string bar(std::size_t i) const {
    const double left = bars_box.left + pitch() * (static_cast<double>(i) + 0.15);
    std::string text;
    double below = 0;
    for (std::size_t part = 0; part < points_[i]->breakdown.size(); ++part) {
      const double above = below + seconds(points_[i]->breakdown[part]);
      if (above > below) {
        text += svg_rectangle({left, y(above), 0.7 * pitch(), y(below) - y(above)},
                              fmt::format("fill='{}'", svg_colours.at(part)));
      }
      below = above;
    }
    const double waits = below + seconds(points_[i]->data_wait.value_or(Time{}));
    if (waits > below) {
      text += svg_rectangle({left, y(waits), 0.7 * pitch(), y(below) - y(waits)}, data_fill);
    }
    return text + svg_text(left + 0.35 * pitch(), bars_box.bottom() + 17,
                           fmt::format("{}", points_[i]->gpus), "text-anchor='middle'");
  }

  std::string legend() const {
    std::string text;
    double down = bars_box.top + 10;
    for (std::size_t part = 0; part < std::size_t{models::time_class_count}; ++part) {
      const bool any = std::ranges::any_of(
          points_, [&](const ScalingPoint* each) { return each->breakdown[part] > Time{}; });
      if (!any) continue;
      text += svg_rectangle({bars_box.right() + 12, down - 9, 10, 10},
                            fmt::format("fill='{}'", svg_colours.at(part)));
      text += svg_text(bars_box.right() + 28, down,
                       std::string{models::name(static_cast<models::TimeClass>(part))}, "");
      down += 17;
    }
    const bool waits = std::ranges::any_of(
        points_, [](const ScalingPoint* each) { return each->data_wait > Time{}; });
    if (waits) {
      text += svg_rectangle({bars_box.right() + 12, down - 9, 10, 10}, data_fill);
      text += svg_text(bars_box.right() + 28, down, "data", "");
    }
    return text + svg_text(bars_box.left + bars_box.width / 2, bars_box.bottom() + 38, "GPUs",
                           "text-anchor='middle'");
  }

  static constexpr const char* data_fill = "fill='#9aa3ae'";
  const std::vector<const ScalingPoint*>& points_;
  double most_ = 1e-12;
};

/// Efficiency over the logarithm of the number of GPUs.
std::string efficiency_panel(const std::vector<const ScalingPoint*>& points) {
  const SvgBox& box = efficiency_box;
  double most = 1;
  for (const ScalingPoint* each : points) most = std::max(most, each->efficiency);
  const double first = std::log2(static_cast<double>(points.front()->gpus));
  const double width = std::max(1.0, std::log2(static_cast<double>(points.back()->gpus)) - first);
  const auto x = [&](std::int64_t gpus) {
    return box.left + box.width * (std::log2(static_cast<double>(gpus)) - first) / width;
  };
  const auto y = [&](double share) { return box.bottom() - box.height * share / most; };
  std::string text =
      svg_text(box.left, 32, "tokens/s per GPU over the first", "font-weight='bold'");
  for (int tenths = 0; tenths <= static_cast<int>(most * 10); tenths += 2) {
    const double share = tenths / 10.0;
    text += svg_line(box.left, y(share), box.right(), y(share),
                     tenths == 10 ? "stroke='#777' stroke-dasharray='4 3'" : "stroke='#e3e3e3'");
    text +=
        svg_text(box.left - 7, y(share) + 4, fmt::format("{} %", tenths * 10), "text-anchor='end'");
  }
  std::string path;
  for (const ScalingPoint* each : points) {
    const double left = x(each->gpus), top = y(each->efficiency);
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", left, top);
    text += svg_circle(left, top, 4, fmt::format("fill='{}'", each->fits ? "#1f77b4" : "#d62728"));
    text += svg_text(left, top + 19, percent(each->efficiency), "text-anchor='middle'");
    text +=
        svg_text(left, box.bottom() + 17, fmt::format("{}", each->gpus), "text-anchor='middle'");
  }
  text += fmt::format("<path d='{}' fill='none' stroke='#1f77b4' stroke-width='2'/>\n", path);
  text += svg_rectangle(box, "fill='none' stroke='#888'");
  const bool all_fit =
      std::ranges::all_of(points, [](const ScalingPoint* each) { return each->fits; });
  return text + svg_text(box.left + box.width / 2, box.bottom() + 38,
                         all_fit ? "GPUs" : "GPUs (red: does not fit in memory)",
                         "text-anchor='middle'");
}

}  // namespace

std::string picture_of(const ScalingReport& report) {
  constexpr double width = 1260, height = 520;
  const std::vector<const ScalingPoint*> points = predicted_points(report);
  const std::string title = svg_text(
      70, 14,
      fmt::format("{} on {}: {} scaling", report.scenario, report.cluster, name(report.scaling)),
      "");
  if (points.empty()) {
    return svg_document(width, height, title + svg_text(70, 50, "no step was predicted", ""));
  }
  return svg_document(width, height, title + Bars{points}.svg() + efficiency_panel(points));
}

}  // namespace orrery::scenarios
