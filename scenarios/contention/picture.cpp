// The picture of contention: a bar per case on an axis that does not begin at 0, so that what
// sharing links costs can be seen.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/contention/contention.hpp"
#include "scenarios/drawing/svg.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox contention_box{290, 70, 640, 380};

struct ContentionPart {
  const char* name;
  const char* colour;
};
constexpr std::array<ContentionPart, 3> contention_parts{
    {{"alone: no link is shared", "#9aa5b1"},
     {"sharing links with its own traffic", "#ff7f0e"},
     {"sharing them with the second job", "#d62728"}}};

class ContentionBars {
 public:
  explicit ContentionBars(const ContentionReport& report) : report_{report} {
    double least = 1e300;
    for (const ContentionCase& each : report.cases) {
      if (!each.refused.empty()) continue;
      least = std::min(least, seconds(each.step - each.network.contention));
      most_ = std::max(most_, seconds(each.step));
    }
    if (most_ <= 0) return;
    // The axis begins where differences of a percent can be seen, and says so.
    from_ = std::max(0.0, least - 0.5 * (most_ - least));
  }

  std::string svg() const {
    if (most_ <= 0) return svg_text(70, 60, "no step was predicted", "");
    std::string text;
    const double tick = svg_tick(most_ - from_);
    for (double at = std::ceil(from_ / tick) * tick; at <= most_ * 1.00001; at += tick) {
      text += svg_line(x(at), contention_box.top - 8, x(at), contention_box.bottom(),
                       "stroke='#e3e3e3'");
      text += svg_text(x(at), contention_box.bottom() + 17, fmt::format("{:.6g} s", at),
                       "text-anchor='middle'");
    }
    text += svg_text(contention_box.left, contention_box.bottom() + 36,
                     fmt::format("one training step; the axis begins at {:.4g} s", from_), "");
    double top = contention_box.top;
    for (std::size_t i = 0; i < report_.cases.size(); ++i) {
      const bool first = i == 0 || report_.cases[i - 1].overlap != report_.cases[i].overlap;
      if (first) {
        top += i == 0 ? 0 : 14;
        text += svg_text(20, top + 12, report_.cases[i].overlap ? "overlap on" : "overlap off",
                         "font-weight='bold'");
        top += 20;
      }
      text += bar(report_.cases[i], top);
      top += 40;
    }
    return text + legend();
  }

 private:
  double x(double at) const {
    return contention_box.left + contention_box.width * (at - from_) / (most_ - from_);
  }

  std::string bar(const ContentionCase& each, double top) const {
    std::string text = svg_text(contention_box.left - 12, top + 17, each.name, "text-anchor='end'");
    if (!each.refused.empty()) {
      return text + svg_text(contention_box.left, top + 17, "not predicted", "fill='#777'");
    }
    const double alone = seconds(each.step - each.network.contention);
    const double jobs = seconds(each.network.from_jobs), step = seconds(each.step);
    // Other jobs may make a step end earlier; then they have no part of the bar.
    const double own = step - std::max(0.0, jobs);
    double left = from_;
    std::size_t part = 0;
    for (const double right : {alone, own, step}) {
      if (right > left) {
        text += svg_rectangle({x(left), top, x(right) - x(left), 26},
                              fmt::format("fill='{}'", contention_parts[part].colour));
        left = right;
      }
      ++part;
    }
    const ContentionCase* usual = report_.usual(each);
    const std::string more =
        usual && usual != &each
            ? fmt::format(" ({:+.2f} %)", 100 * (orrery::ratio(each.step, usual->step) - 1))
            : "";
    return text + svg_text(x(step) + 8, top + 17, fmt::format("{:.3f} s{}", step, more), "");
  }

  std::string legend() const {
    std::string text;
    double left = contention_box.left;
    for (const ContentionPart& each : contention_parts) {
      text += svg_rectangle({left, 36, 11, 11}, fmt::format("fill='{}'", each.colour));
      text += svg_text(left + 17, 46, each.name, "");
      left += 260;
    }
    return text;
  }

  const ContentionReport& report_;
  double from_ = 0, most_ = 0;
};

}  // namespace

std::string picture_of(const ContentionReport& report) {
  const std::string title = svg_text(20, 22,
                                     fmt::format("What the network costs {}: {} of {} nodes",
                                                 report.scenario, report.nodes, report.all_nodes),
                                     "font-weight='bold'");
  return svg_document(1120, 510, title + ContentionBars{report}.svg());
}

}  // namespace orrery::scenarios
