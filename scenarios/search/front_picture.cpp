// The picture of a plan search's Pareto front.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/drawing/svg.hpp"
#include "scenarios/search/plan_report.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox front_box{90, 60, 640, 400};

/// One axis: the measures of an objective in a unit that people read.
class FrontAxis {
 public:
  FrontAxis(const Objective& objective, const std::vector<double>& values) : objective_{objective} {
    least_ = *std::ranges::min_element(values);
    most_ = *std::ranges::max_element(values);
    const double room = std::max(0.06 * (most_ - least_), 0.01 * most_);
    least_ = std::max(0.0, least_ - room);
    most_ += room;
  }

  std::string label() const {
    if (objective_.name == "memory") return "memory of the fullest GPU (GiB)";
    if (objective_.name == "cost") return "dollars per step";
    if (objective_.name == "energy") return "energy per step (J)";
    return objective_.name == "days" ? "days per trillion tokens" : "step (s)";
  }
  double share(double value) const { return (value - least_) / (most_ - least_); }
  /// Ticks in the axis's unit, as shares of its length.
  std::vector<std::pair<double, double>> ticks() const {
    const double unit = objective_.name == "memory" ? std::exp2(30) : 1;
    const double step = svg_tick((most_ - least_) / unit);
    std::vector<std::pair<double, double>> found;
    for (double at = std::ceil(least_ / unit / step) * step; at * unit <= most_; at += step) {
      found.emplace_back(at, share(at * unit));
    }
    return found;
  }

 private:
  const Objective& objective_;
  double least_ = 0, most_ = 1;
};

class FrontPicture {
 public:
  explicit FrontPicture(const PlanReport& report)
      : report_{report}, front_{front_of(report.answer, report.objective, *report.against)} {}

  std::string svg() const {
    const std::string title =
        fmt::format("Plans for {} on {}", report_.query.model.name, report_.cluster);
    std::string text = svg_text(front_box.left, 24, markup(title), "font-weight='bold'");
    if (front_.empty()) {
      return svg_document(760, 120, text + svg_text(front_box.left, 60, "no plan fits", ""));
    }
    const std::vector<const Candidate*> plans = shown();
    std::vector<double> across, up;
    for (const Candidate* each : plans) {
      across.push_back(report_.objective.measure(each->estimate));
      up.push_back(report_.against->measure(each->estimate));
    }
    const FrontAxis x{report_.objective, across}, y{*report_.against, up};
    text += svg_text(front_box.left, 42,
                     fmt::format("Pareto front of {} and {}: {} plans, of {} estimated that fit",
                                 report_.objective.name, report_.against->name, front_.size(),
                                 report_.answer.fits()),
                     "fill='#555'");
    text += grid(x, y);
    for (const Candidate* each : plans) {
      text +=
          svg_circle(left_of(x, each), top_of(y, each), 2.5, "fill='#8fa3b5' fill-opacity='0.5'");
    }
    return svg_document(760, 530, text + line(x, y));
  }

 private:
  /// Those up to twice the best, so that slow plans do not squeeze the rest.
  std::vector<const Candidate*> shown() const {
    std::vector<const Candidate*> found;
    const double most = std::max(2 * report_.objective.measure(front_.front()->estimate),
                                 report_.objective.measure(front_.back()->estimate));
    for (const Candidate& each : report_.answer.fitting) {
      if (report_.objective.measure(each.estimate) <= most) found.push_back(&each);
    }
    return found;
  }
  double left_of(const FrontAxis& x, const Candidate* each) const {
    return front_box.left + front_box.width * x.share(report_.objective.measure(each->estimate));
  }
  double top_of(const FrontAxis& y, const Candidate* each) const {
    return front_box.bottom() -
           front_box.height * y.share(report_.against->measure(each->estimate));
  }

  static std::string grid(const FrontAxis& x, const FrontAxis& y) {
    std::string text;
    for (const auto& [value, share] : x.ticks()) {
      const double left = front_box.left + front_box.width * share;
      text += svg_line(left, front_box.top, left, front_box.bottom(), "stroke='#e3e3e3'");
      text += svg_text(left, front_box.bottom() + 17, fmt::format("{:g}", value),
                       "text-anchor='middle'");
    }
    for (const auto& [value, share] : y.ticks()) {
      const double top = front_box.bottom() - front_box.height * share;
      text += svg_line(front_box.left, top, front_box.right(), top, "stroke='#e3e3e3'");
      text +=
          svg_text(front_box.left - 7, top + 4, fmt::format("{:g}", value), "text-anchor='end'");
    }
    text += svg_rectangle(front_box, "fill='none' stroke='#888'");
    text += svg_text(front_box.left + front_box.width / 2, front_box.bottom() + 40, x.label(),
                     "text-anchor='middle'");
    const double middle = front_box.top + front_box.height / 2;
    return text +
           svg_text(22, middle, y.label(),
                    fmt::format("text-anchor='middle' transform='rotate(-90 22 {:.0f})'", middle));
  }

  /// The front as steps: between two of its plans none is better than the left one.
  std::string line(const FrontAxis& x, const FrontAxis& y) const {
    std::string path, marks;
    for (std::size_t i = 0; i < front_.size(); ++i) {
      const double left = left_of(x, front_[i]), top = top_of(y, front_[i]);
      path += i == 0 ? fmt::format("M{:.1f} {:.1f}", left, top)
                     : fmt::format(" H{:.1f} V{:.1f}", left, top);
      marks += svg_circle(left, top, 4, "fill='#1f77b4'");
      if (i > 0 && i + 1 < front_.size()) continue;
      const models::Plan& plan = front_[i]->placed.plan;
      const bool on_right = left > front_box.left + front_box.width / 2;
      marks += svg_text(left + (on_right ? -9 : 9), top - 8,
                        fmt::format("TP{} PP{} DP{}, recompute {}", plan.tensor, plan.pipeline,
                                    plan.data, models::name(plan.recompute.kind)),
                        fmt::format("text-anchor='{}'", on_right ? "end" : "start"));
    }
    return fmt::format("<path d='{}' fill='none' stroke='#1f77b4' stroke-width='2'/>\n", path) +
           marks;
  }

  const PlanReport& report_;
  std::vector<const Candidate*> front_;
};

}  // namespace

std::string picture_of(const PlanReport& report) {
  ensure(report.against != nullptr, "a picture of plans shows two objectives");
  return FrontPicture{report}.svg();
}

}  // namespace orrery::scenarios
