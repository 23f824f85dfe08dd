// The picture of a whole run: tokens against days as a fan with the failures of a median run, the
// ledger as one bar, and the probability of being done by a day.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/drawing/svg.hpp"
#include "scenarios/whole_run/whole_run.hpp"

namespace orrery::scenarios {

namespace {

constexpr SvgBox fan_box{80, 70, 520, 330};
constexpr SvgBox done_box{700, 70, 440, 330};
constexpr SvgBox ledger_box{80, 490, 1060, 34};
constexpr double width = 1180, height = 610;
constexpr const char* grid = "stroke='#e3e3e3'";
constexpr const char* blue = "#1f77b4";

std::string polygon(const std::string& points, const std::string& attributes) {
  return fmt::format("<polygon points='{}' {}/>\n", points, attributes);
}

std::string point(double x, double y) {
  return fmt::format("{:.1f},{:.1f} ", x, y);
}

/// Vertical lines at days.
class DayAxis {
 public:
  DayAxis(const SvgBox& box, double from, double to) : box_{box}, from_{from}, to_{to} {}

  double x(double day) const { return box_.left + box_.width * (day - from_) / (to_ - from_); }

  std::string svg() const {
    std::string text;
    const double tick = svg_tick(to_ - from_);
    for (double day = std::ceil(from_ / tick) * tick; day <= to_ * 1.0001; day += tick) {
      text += svg_line(x(day), box_.top, x(day), box_.bottom(), grid);
      text +=
          svg_text(x(day), box_.bottom() + 17, fmt::format("{:g}", day), "text-anchor='middle'");
    }
    return text +
           svg_text(box_.left + box_.width / 2, box_.bottom() + 36, "days", "text-anchor='middle'");
  }

 private:
  SvgBox box_;
  double from_, to_;
};

std::string rows(const SvgBox& box, const std::vector<std::pair<double, std::string>>& labels) {
  std::string text;
  for (const auto& [share, label] : labels) {
    const double y = box.bottom() - box.height * share;
    text += svg_line(box.left, y, box.right(), y, grid);
    text += svg_text(box.left - 7, y + 4, label, "text-anchor='end'");
  }
  return text;
}

std::string token_label(double tokens) {
  if (tokens == 0) return "0";
  return tokens >= 1e12 ? fmt::format("{:.3g}T", tokens / 1e12)
                        : fmt::format("{:.3g}B", tokens / 1e9);
}

std::string fan_panel(const WholeRunReport& report) {
  const WholeRun& run = report.run;
  const SvgBox& box = fan_box;
  const double most = std::max(run.days.p90 * 1.08, report.deadline_days.value_or(0) * 1.04);
  const DayAxis axis{box, 0, most};
  std::vector<std::pair<double, std::string>> labels;
  for (int i = 0; i <= 4; ++i) labels.emplace_back(i / 4.0, token_label(report.tokens * i / 4));
  std::string text = svg_text(box.left, 56, "tokens trained", "font-weight='bold'");
  text += rows(box, labels) + axis.svg();
  const auto corner = [&](double days) { return point(axis.x(days), box.top); };
  text += polygon(point(axis.x(0), box.bottom()) + corner(run.days.p10) + corner(run.days.p90),
                  fmt::format("fill='{}' fill-opacity='0.2'", blue));
  text += svg_line(axis.x(0), box.bottom(), axis.x(run.days.p50), box.top,
                   fmt::format("stroke='{}' stroke-width='2'", blue));
  const double alone = run.model.alone().count() / 86'400;
  text += svg_line(axis.x(0), box.bottom(), axis.x(alone), box.top,
                   "stroke='#777' stroke-dasharray='5 4'");
  // A label stands where the lines of the fan are not.
  text += svg_text(axis.x(0) + 12, box.top + 20,
                   fmt::format("dashed: {:.3g} days if never interrupted", alone), "fill='#777'");
  text += svg_text(axis.x(0) + 12, box.top + 38,
                   fmt::format("line: {:.3g} days, half of all cases", run.days.p50),
                   fmt::format("fill='{}'", blue));
  text += svg_text(axis.x(0) + 12, box.top + 56,
                   fmt::format("fan: {:.3g} to {:.3g} days, 8 of 10", run.days.p10, run.days.p90),
                   fmt::format("fill='{}'", blue));
  if (!run.failure_days.empty()) {
    for (const double day : run.failure_days) {
      if (day > most) break;
      text += svg_line(axis.x(day), box.bottom() - 9, axis.x(day), box.bottom(),
                       "stroke='#d62728' stroke-width='0.6'");
    }
    text += svg_text(box.right() - 6, box.bottom() - 16,
                     fmt::format("{} failures of a median run", run.failure_days.size()),
                     "text-anchor='end' fill='#d62728'");
  }
  return text + svg_rectangle(box, "fill='none' stroke='#888'");
}

std::string done_panel(const WholeRunReport& report) {
  const std::vector<double>& days = report.run.sorted_days;
  const SvgBox& box = done_box;
  const double shortest = days[days.size() / 200],
               longest = days[days.size() - 1 - days.size() / 200];
  const double deadline = report.deadline_days.value_or(shortest);
  const double from = std::min(shortest, deadline) * 0.97;
  const double to = std::max(longest, report.deadline_days.value_or(0)) * 1.03;
  const DayAxis axis{box, from, to};
  std::string text =
      svg_text(box.left, 56, "probability of being done by a day", "font-weight='bold'");
  text += rows(box, {{0, "0"}, {0.25, "25 %"}, {0.5, "50 %"}, {0.75, "75 %"}, {1, "100 %"}});
  text += axis.svg();
  std::string path;
  constexpr int steps = 200;
  for (int i = 0; i <= steps; ++i) {
    const double day = from + (to - from) * i / steps;
    path += (i == 0 ? "M" : "L") +
            point(axis.x(day), box.bottom() - box.height * report.run.probability_within(day));
  }
  text += fmt::format("<path d='{}' fill='none' stroke='{}' stroke-width='2'/>\n", path, blue);
  if (report.deadline_days) {
    const double probability = report.deadline_probability();
    const double x = axis.x(deadline), y = box.bottom() - box.height * probability;
    const char* colour = probability >= report.confidence ? "#2ca02c" : "#d62728";
    text +=
        svg_line(x, box.top, x, box.bottom(), fmt::format("stroke='{}' stroke-width='2'", colour));
    text += svg_circle(x, y, 4, fmt::format("fill='{}'", colour));
    const bool right = x < box.left + box.width * 0.6;
    text += svg_text(right ? x + 9 : x - 9, box.bottom() - 12,
                     fmt::format("deadline {:.4g} days: {:.0f} %", deadline, 100 * probability),
                     fmt::format("fill='{}' text-anchor='{}'", colour, right ? "start" : "end"));
  }
  return text + svg_rectangle(box, "fill='none' stroke='#888'");
}

/// Restarts are one part: their stages are in the report.
std::vector<Share> drawn_shares(const WholeRun& run) {
  std::vector<Share> shares;
  for (const auto& [name, share] : run.ledger) {
    const std::string drawn = name.starts_with("restart") ? "restarts" : name;
    if (!shares.empty() && shares.back().first == drawn)
      shares.back().second += share;
    else
      shares.emplace_back(drawn, share);
  }
  std::erase_if(shares, [](const Share& each) { return each.second < 5e-4; });
  return shares;
}

std::string ledger_panel(const WholeRunReport& report) {
  const SvgBox& box = ledger_box;
  const std::vector<Share> shares = drawn_shares(report.run);
  double sum = 0;
  for (const Share& each : shares) sum += each.second;
  std::string text = svg_text(box.left, box.top - 12, "where the time goes", "font-weight='bold'");
  double left = box.left, legend = box.left;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const double wide = box.width * shares[i].second / sum;
    const char* colour = svg_colours.at(i % svg_colours.size());
    text += svg_rectangle({left, box.top, wide, box.height}, fmt::format("fill='{}'", colour));
    const std::string words = fmt::format("{} {:.1f} %", shares[i].first, 100 * shares[i].second);
    text += svg_rectangle({legend, box.bottom() + 18, 11, 11}, fmt::format("fill='{}'", colour));
    text += svg_text(legend + 16, box.bottom() + 28, words, "");
    left += wide;
    legend += 34 + 6.6 * static_cast<double>(words.size());
  }
  return text;
}

}  // namespace

std::string picture_of(const WholeRunReport& report) {
  const std::string title =
      fmt::format("{} on {}: {} tokens, {} simulated runs", report.model_name, report.cluster,
                  token_label(report.tokens), report.run.samples);
  return svg_document(width, height,
                      svg_text(80, 26, markup(title), "font-size='15'") + fan_panel(report) +
                          done_panel(report) + ledger_panel(report));
}

}  // namespace orrery::scenarios
