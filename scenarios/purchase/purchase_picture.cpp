// Days against dollars: the picture of a survey of clusters.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/drawing/svg.hpp"
#include "scenarios/purchase/purchase_report.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox plane{90, 60, 560, 420};
constexpr double list_left = 680, picture_width = 1120, picture_height = 560;
constexpr const char *front_colour = "#d62728", *point_colour = "#1f77b4";

/// A logarithmic axis over positive numbers, a tenth wider on each side.
class LogAxis {
 public:
  void include(double value) {
    if (!(value > 0)) return;
    low_ = std::min(low_, std::log10(value));
    high_ = std::max(high_, std::log10(value));
  }
  void widen() {
    const double around = std::max(0.08 * (high_ - low_), 0.05);
    low_ -= around;
    high_ += around;
  }
  bool empty() const { return low_ > high_; }
  double share(double value) const { return (std::log10(value) - low_) / (high_ - low_); }
  /// 1, 2 and 5 times powers of ten; where they are fewer than two, a finer step.
  std::vector<double> ticks() const {
    std::vector<double> found = at_factors({1, 2, 5});
    return found.size() > 1 ? found : at_factors({1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9});
  }

 private:
  std::vector<double> at_factors(const std::vector<double>& factors) const {
    std::vector<double> found;
    for (double power = std::floor(low_); power <= high_; ++power) {
      for (const double factor : factors) {
        const double at = power + std::log10(factor);
        if (at >= low_ && at <= high_) found.push_back(std::pow(10, power) * factor);
      }
    }
    return found;
  }

  double low_ = HUGE_VAL, high_ = -HUGE_VAL;
};

std::string dollar_label(double dollars) {
  if (dollars >= 1e9) return fmt::format("${:g}B", dollars / 1e9);
  if (dollars >= 1e6) return fmt::format("${:g}M", dollars / 1e6);
  return dollars >= 1e3 ? fmt::format("${:g}k", dollars / 1e3) : fmt::format("${:g}", dollars);
}

class PurchasePicture {
 public:
  explicit PurchasePicture(const PurchaseReport& report) : report_{report} {
    for (const PurchaseChoice& each : report.answer.choices) {
      if (!each.cost) {
        ++without_price_;
        continue;
      }
      shown_.push_back(&each);
      days_.include(each.days);
      dollars_.include(each.cost->count());
      if (!each.pareto) continue;  // whose ranges are not drawn
      const RunRange days = day_range(each), dollars = cost_range(each);
      for (const double day : {days.p10, days.p90}) days_.include(day);
      for (const double amount : {dollars.p10, dollars.p90}) dollars_.include(amount);
    }
    if (report.query.deadline_days) days_.include(*report.query.deadline_days);
    if (report.query.budget) dollars_.include(report.query.budget->count());
    days_.widen();
    dollars_.widen();
  }

  std::string svg() const {
    const double tokens = report_.query.tokens;
    const std::string title =
        fmt::format("{} on {:.4g}{} tokens: days and dollars", report_.query.plan.model.name,
                    tokens >= 1e12 ? tokens / 1e12 : tokens / 1e9, tokens >= 1e12 ? "T" : "B");
    std::string text = svg_text(plane.left, 26, title, "font-size='15'");
    if (shown_.empty()) {
      return text + svg_text(plane.left, 60, "no cluster has a price (--quote)", "");
    }
    return text + axes() + limits() + points() + front() + notes() +
           svg_rectangle(plane, "fill='none' stroke='#888'");
  }

 private:
  static RunRange day_range(const PurchaseChoice& choice) {
    return choice.day_range.value_or(RunRange{choice.days, choice.days, choice.days, 0});
  }
  static RunRange cost_range(const PurchaseChoice& choice) {
    const double cost = choice.cost->count();
    return choice.cost_range.value_or(RunRange{cost, cost, cost, 0});
  }
  double x(double days) const { return plane.left + plane.width * days_.share(days); }
  double y(double dollars) const { return plane.bottom() - plane.height * dollars_.share(dollars); }

  std::string axes() const {
    std::string text;
    for (const double day : days_.ticks()) {
      text += svg_line(x(day), plane.top, x(day), plane.bottom(), "stroke='#e3e3e3'");
      text +=
          svg_text(x(day), plane.bottom() + 17, fmt::format("{:g}", day), "text-anchor='middle'");
    }
    for (const double amount : dollars_.ticks()) {
      text += svg_line(plane.left, y(amount), plane.right(), y(amount), "stroke='#e3e3e3'");
      text += svg_text(plane.left - 7, y(amount) + 4, dollar_label(amount), "text-anchor='end'");
    }
    return text +
           svg_text(plane.left + plane.width / 2, plane.bottom() + 38, "days",
                    "text-anchor='middle'") +
           svg_text(plane.left, plane.top - 10, "dollars", "font-weight='bold'");
  }

  std::string limits() const {
    std::string text;
    const char* style = "stroke='#2ca02c' stroke-dasharray='5 4'";
    if (const auto& days = report_.query.deadline_days) {
      text += svg_line(x(*days), plane.top, x(*days), plane.bottom(), style);
      text += svg_text(x(*days) - 4, plane.top + 14, fmt::format("{:g} days", *days),
                       "text-anchor='end' fill='#2ca02c'");
    }
    if (const auto& budget = report_.query.budget) {
      text += svg_line(plane.left, y(budget->count()), plane.right(), y(budget->count()), style);
      text += svg_text(plane.right() - 6, y(budget->count()) - 5, dollar_label(budget->count()),
                       "text-anchor='end' fill='#2ca02c'");
    }
    return text;
  }

  /// Every choice; ranges are drawn of the front alone, where they can be told apart.
  std::string points() const {
    std::string text;
    for (const PurchaseChoice* each : shown_) {
      if (each->pareto) continue;
      text += svg_circle(
          x(each->days), y(each->cost->count()), 3,
          fmt::format("fill='{}' fill-opacity='{}'", point_colour, each->meets ? "0.8" : "0.3"));
    }
    return text;
  }

  std::string front() const {
    std::vector<const PurchaseChoice*> order;
    for (const PurchaseChoice* each : shown_) {
      if (each->pareto) order.push_back(each);
    }
    std::ranges::sort(order, {}, &PurchaseChoice::days);
    std::string text, numbers;
    double down = plane.top + 14;
    text += svg_text(list_left, plane.top - 10, "none is both faster and cheaper than these",
                     fmt::format("font-weight='bold' fill='{}'", front_colour));
    for (std::size_t i = 0; i < order.size(); ++i) {
      const PurchaseChoice& each = *order[i];
      const RunRange days = day_range(each), dollars = cost_range(each);
      const double across = x(each.days), height = y(each.cost->count());
      const std::string line = fmt::format("stroke='{}' stroke-width='1.2'", front_colour);
      text += svg_line(x(days.p10), height, x(days.p90), height, line);
      text += svg_line(across, y(dollars.p10), across, y(dollars.p90), line);
      if (i > 0) {
        text += svg_line(x(order[i - 1]->days), y(order[i - 1]->cost->count()), across, height,
                         fmt::format("stroke='{}' stroke-opacity='0.4'", front_colour));
      }
      text += svg_circle(across, height, 8, fmt::format("fill='{}'", front_colour));
      numbers += svg_text(across, height + 4, fmt::format("{}", i + 1),
                          "text-anchor='middle' fill='white' font-size='10'");
      if (i >= most_listed) continue;
      text += svg_text(list_left, down,
                       fmt::format("{}  {} x {}: {:.3g} days, {}", i + 1, each.node, each.nodes,
                                   each.days, format(*each.cost)),
                       "");
      down += 19;
    }
    if (order.size() > most_listed) {
      text += svg_text(list_left, down, fmt::format("and {} more", order.size() - most_listed), "");
    }
    return text + numbers;
  }

  std::string notes() const {
    std::string text = fmt::format("{} choices; bars: 8 of 10 cases of the front", shown_.size());
    if (without_price_ > 0)
      text += fmt::format("; {} without a price are not drawn", without_price_);
    if (report_.query.deadline_days || report_.query.budget) text += "; faint: misses a limit";
    return svg_text(plane.left, plane.bottom() + 62, text, "fill='#555'");
  }

  static constexpr std::size_t most_listed = 21;
  const PurchaseReport& report_;
  std::vector<const PurchaseChoice*> shown_;
  std::size_t without_price_ = 0;
  LogAxis days_, dollars_;
};

}  // namespace

std::string picture_of(const PurchaseReport& report) {
  return svg_document(picture_width, picture_height, PurchasePicture{report}.svg());
}

}  // namespace orrery::scenarios
