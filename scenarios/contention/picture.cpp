// The picture of contention: for each case, what is added to the step of contiguous nodes that
// share no link, as a share of it, from zero. Axes never span less than 1 %, so that a small effect
// looks small.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/contention/contention.hpp"
#include "scenarios/drawing/svg.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox contention_box{320, 84, 580, 380};

struct ContentionPart {
  const char* name;
  const char* colour;
};
constexpr std::array<ContentionPart, 3> contention_parts{
    {{"the slower part itself", "#9aa5b1"},
     {"sharing links with its own traffic", "#ff7f0e"},
     {"sharing them with the second job", "#d62728"}}};

class ContentionBars {
 public:
  explicit ContentionBars(const ContentionReport& report) : report_{report} {
    for (const ContentionCase& each : report.cases) {
      if (!report.usual(each) || !each.refused.empty()) continue;
      any_ = true;
      const double step = added(each, each.step), error = 2 * spread_of(each);
      for (const double end : {step - error, step + error, added(each, each.alone())}) {
        least_ = std::min(least_, end);
        most_ = std::max(most_, end);
      }
    }
  }

  std::string svg() const {
    if (!any_) return svg_text(70, 60, "no step was predicted", "");
    std::string text = axis();
    double top = contention_box.top;
    for (std::size_t i = 0; i < report_.cases.size(); ++i) {
      const bool first = i == 0 || report_.cases[i - 1].overlap != report_.cases[i].overlap;
      if (first) {
        top += i == 0 ? 0 : 14;
        text += heading(report_.cases[i], top);
        top += 20;
      }
      text += bar(report_.cases[i], top);
      top += 40;
    }
    return text + legend();
  }

 private:
  /// By how much a step is longer than the contiguous one that shares no link, in percent of it.
  double added(const ContentionCase& each, Time step) const {
    return 100 * (orrery::ratio(step, report_.usual(each)->alone()) - 1);
  }
  /// Standard error of the mean contention, in percent.
  double spread_of(const ContentionCase& each) const {
    const double alone = seconds(report_.usual(each)->alone());
    return 100 * mean_and_spread(each.phases.contention).error / alone;
  }

  double x(double percent) const {
    return contention_box.left + contention_box.width * (percent - least_) / (most_ - least_);
  }

  std::string axis() const {
    std::string text;
    const double tick = svg_tick(most_ - least_);
    for (double at = std::ceil(least_ / tick) * tick; at <= most_ * 1.00001; at += tick) {
      const bool zero = std::abs(at) < tick / 2;
      text += svg_line(x(at), contention_box.top - 8, x(at), contention_box.bottom(),
                       zero ? "stroke='#777'" : "stroke='#e3e3e3'");
      text += svg_text(x(at), contention_box.bottom() + 17, fmt::format("{:.3g} %", zero ? 0 : at),
                       "text-anchor='middle'");
    }
    return text + svg_text(contention_box.left, contention_box.bottom() + 36,
                           fmt::format("added to the step of contiguous nodes that share no link; "
                                       "means of {} phases, with two standard errors",
                                       report_.phases.count),
                           "");
  }

  std::string heading(const ContentionCase& each, double top) const {
    const ContentionCase* usual = report_.usual(each);
    const std::string alone =
        usual ? fmt::format(": {:.2f} s with no link shared", seconds(usual->alone())) : "";
    return svg_text(20, top + 12, (each.overlap ? "overlap on" : "overlap off") + alone,
                    "font-weight='bold'");
  }

  std::string bar(const ContentionCase& each, double top) const {
    std::string text = svg_text(contention_box.left - 12, top + 17, each.name, "text-anchor='end'");
    if (!each.refused.empty() || !report_.usual(each)) {
      return text + svg_text(contention_box.left, top + 17, "not predicted", "fill='#777'");
    }
    const double step = added(each, each.step), alone = added(each, each.alone());
    // Other jobs may make a step end earlier; then they have no part of the bar.
    const double own = added(each, each.step - std::max(Time{}, each.from_jobs));
    double left = 0;
    std::size_t part = 0;
    for (const double right : {alone, own, step}) {
      if (right != left) {
        text += svg_rectangle({x(std::min(left, right)), top, std::abs(x(right) - x(left)), 26},
                              fmt::format("fill='{}'", contention_parts[part].colour));
        left = right;
      }
      ++part;
    }
    const double error = 2 * spread_of(each), end = std::max({0.0, step + error, alone});
    text += svg_line(x(step - error), top + 13, x(step + error), top + 13, "stroke='#222'");
    for (const double at : {step - error, step + error}) {
      text += svg_line(x(at), top + 8, x(at), top + 18, "stroke='#222'");
    }
    return text + svg_text(x(end) + 8, top + 17,
                           fmt::format("{:+.2f} %, {:.3f} s", step, seconds(each.step)), "");
  }

  std::string legend() const {
    std::string text;
    double left = contention_box.left;
    for (const ContentionPart& each : contention_parts) {
      text += svg_rectangle({left, 36, 11, 11}, fmt::format("fill='{}'", each.colour));
      text += svg_text(left + 17, 46, each.name, "");
      left += 250;
    }
    return text;
  }

  const ContentionReport& report_;
  bool any_ = false;
  double least_ = 0, most_ = 1;  // of the axis, in percent
};

}  // namespace

std::string picture_of(const ContentionReport& report) {
  const std::string title = svg_text(20, 22,
                                     fmt::format("What the network costs {}: {} of {} nodes",
                                                 report.scenario, report.nodes, report.all_nodes),
                                     "font-weight='bold'");
  return svg_document(1120, 524, title + ContentionBars{report}.svg());
}

}  // namespace orrery::scenarios
