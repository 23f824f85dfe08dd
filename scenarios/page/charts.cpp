#include "scenarios/page/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/drawing/svg.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr double chart_width = 960;
constexpr double text_width = 6.3;  // of a character of 12 pixels, on average

std::string svg_begin(double height, std::string_view title) {
  return fmt::format(
      "<div class='wide'><svg viewBox='0 0 {} {:.0f}' style='min-width:640px' role='img' "
      "aria-label='{}'><title>{}</title>\n",
      chart_width, height, markup(title), markup(title));
}

std::string chart_text(double x, double y, std::string_view text, std::string_view css,
                       std::string_view anchor = "start") {
  return fmt::format("<text x='{:.1f}' y='{:.1f}' class='{}' text-anchor='{}'>{}</text>\n", x, y,
                     css, anchor, markup(text));
}

std::string chart_line(double x1, double y1, double x2, double y2, std::string_view css) {
  return fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' class='{}'/>\n", x1, y1,
                     x2, y2, css);
}

/// `hint` is shown where the pointer rests.
std::string chart_box(const SvgBox& box, std::string_view colour, std::string_view hint,
                      std::string_view more = "") {
  return fmt::format(
      "<rect x='{:.1f}' y='{:.1f}' width='{:.2f}' height='{:.1f}' style='fill:{}' {}>{}</rect>\n",
      box.left, box.top, box.width, box.height, colour, more,
      hint.empty() ? "" : fmt::format("<title>{}</title>", markup(hint)));
}

/// Shortened to so many pixels.
std::string fitted(std::string_view text, double pixels) {
  const auto most = static_cast<std::size_t>(std::max(pixels / text_width, 4.0));
  if (text.size() <= most) return std::string{text};
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string{text.substr(0, end)} + "\u2026";
}

using Wording = std::string (*)(double);

/// The unit of an axis, in which its ticks are round, and what is written around its numbers.
struct AxisUnit {
  double size = 1;
  std::string_view after, before{};
};

std::optional<AxisUnit> axis_unit(Wording words, double most) {
  if (words == time_words) {
    if (most >= 1e6) return std::nullopt;
    return most >= 2      ? AxisUnit{1, " s"}
           : most >= 2e-3 ? AxisUnit{1e-3, " ms"}
                          : AxisUnit{1e-6, " us"};
  }
  if (words == days_in_words) return AxisUnit{1, most >= 2 ? " days" : " day"};
  if (words == dollar_words && most >= 2) {
    return most >= 2e6   ? AxisUnit{1e6, "M", "$"}
           : most >= 2e3 ? AxisUnit{1e3, "k", "$"}
                         : AxisUnit{1, "", "$"};
  }
  if (words != size_words) return std::nullopt;
  constexpr double kib = 1024;
  double size = 1;
  std::string_view symbol = " B";
  for (const char* each : {" KiB", " MiB", " GiB", " TiB"}) {
    if (most < 2 * size * kib) break;
    size *= kib;
    symbol = each;
  }
  return AxisUnit{size, symbol};
}

/// Words below a tick, which stay inside the picture.
std::string tick_text(double x, double y, const std::string& label) {
  const bool at_edge = x + text_width * static_cast<double>(label.size()) / 2 > chart_width;
  return chart_text(at_edge ? chart_width : x, y, label, "faint", at_edge ? "end" : "middle");
}

/// An axis from zero: positions, and ticks with their words.
class ChartAxis {
 public:
  ChartAxis(double from, double to, double most)
      : from_{from}, to_{to}, most_{most > 0 ? most : 1} {}

  double at(double value) const { return from_ + (to_ - from_) * value / most_; }
  /// Positions of ticks and their words.
  std::vector<std::pair<double, std::string>> ticks(Wording words) const {
    std::vector<std::pair<double, std::string>> all;
    const auto unit = axis_unit(words, most_);
    const double size = unit ? unit->size : 1, tick = svg_tick(most_ / size);
    for (int i = 0; tick * i <= most_ / size * 1.0001; ++i) {
      const std::string text = i == 0 ? "0"
                               : unit ? fmt::format("{}{:g}{}", unit->before, tick * i, unit->after)
                                      : words(tick * i);
      all.emplace_back(tick * i * size, text);
    }
    return all;
  }
  /// Vertical lines, with words below them.
  std::string below(double top, double bottom, Wording words) const {
    std::string text;
    for (const auto& [value, label] : ticks(words)) {
      text += chart_line(at(value), top, at(value), bottom, "grid");
      text += tick_text(at(value), bottom + 15, label);
    }
    return text;
  }

 private:
  double from_, to_, most_;
};

/// Squares with labels, in as many lines as they need; `bottom` is moved below them.
std::string legend_rows(const std::vector<ChartBar>& entries, double left, double& bottom) {
  std::string text;
  double x = left;
  for (const ChartBar& each : entries) {
    const double width = 28 + 1.05 * text_width * static_cast<double>(each.label.size());
    if (x + width > chart_width && x > left) {
      x = left;
      bottom += 20;
    }
    text += chart_box({x, bottom, 11, 11}, each.colour, "", "rx='2'");
    text += chart_text(x + 16, bottom + 10, each.label, "ink");
    x += width + 8;
  }
  bottom += 20;
  return text;
}

/// Labels that were placed, and what they must not cover.
class PlacedLabels {
 public:
  explicit PlacedLabels(SvgBox inside) : inside_{inside} {}

  void avoid(const SvgBox& box) { taken_.push_back(box); }
  /// A box of that size near a point, inside the picture and clear of all others; nullopt: none.
  std::optional<SvgBox> place(double x, double y, double width, double height) {
    constexpr double gap = 9;
    for (int step = 0; step < 14; ++step) {
      for (const bool above : {true, false}) {
        for (const bool to_right : {true, false}) {
          const double up = height + 4 + height * step;
          const SvgBox own{to_right ? x + gap : x - gap - width, above ? y - up : y + up - height,
                           width, height};
          if (free(own)) {
            taken_.push_back(own);
            return own;
          }
        }
      }
    }
    return std::nullopt;
  }

 private:
  bool free(const SvgBox& own) const {
    const bool inside = own.left >= inside_.left && own.right() <= inside_.right() &&
                        own.top >= inside_.top && own.bottom() <= inside_.bottom();
    return inside && std::ranges::none_of(taken_, [&](const SvgBox& other) {
             return own.left < other.right() && other.left < own.right() &&
                    own.top < other.bottom() && other.top < own.bottom();
           });
  }

  SvgBox inside_;
  std::vector<SvgBox> taken_;
};

}  // namespace

const std::vector<PageColour>& page_colours() {
  static const std::vector<PageColour> all{
      {"gemm", "GEMM", "#2b5c94", "#5b93d1"},
      {"attention", "attention", "#4f94d4", "#7db6ec"},
      {"memory_bound", "memory-bound kernels", "#9dc6ea", "#b5d6f2"},
      {"optimizer", "optimizer", "#7a66b3", "#a594db"},
      {"tp", "tensor parallel", "#e8743b", "#f08b57"},
      {"cp", "context parallel", "#d98cb3", "#e3a3c4"},
      {"ep", "expert parallel", "#4fa3a0", "#6bbfbc"},
      {"dp", "data parallel", "#f2b134", "#f2b134"},
      {"pp", "pipeline transfers", "#c94f4f", "#e07070"},
      {"other_comm", "other communication", "#a8734a", "#c68f63"},
      {"bubble", "pipeline bubble", "#a9b3bf", "#6b7684"},
      {"host", "host", "#8a94a3", "#8a94a3"},
      {"other", "other", "#b9a9c9", "#9d8fb0"},
      {"data", "waiting for data", "#9a9a3c", "#b8b85c"},
      {"forward", "forward", "#4f94d4", "#7db6ec"},
      {"backward", "backward", "#2b5c94", "#5b93d1"},
      {"weight_gradient", "weight gradients", "#17436f", "#3f76b3"},
      {"send", "send", "#c94f4f", "#e07070"},
      {"receive", "receive", "#eda39b", "#f0b3ac"},
      {"reduce_gradient", "gradient reduction", "#f2b134", "#f2b134"},
      {"gather", "parameter gather", "#c99a2e", "#d8ac49"},
      {"unshard", "parameter gather (ZeRO-3)", "#b58a2a", "#cba14a"},
      {"sum_replicas", "sum of replicas", "#a8734a", "#c68f63"},
      {"norm", "gradient norm", "#6f9a6c", "#8fbb8c"},
      {"compress", "compression", "#8f7ac2", "#b3a2e0"},
      {"parameter", "parameters", "#2b5c94", "#5b93d1"},
      {"gradient", "gradients", "#f2b134", "#f2b134"},
      {"activation", "activations", "#4f94d4", "#7db6ec"},
      {"staging", "staging", "#d98cb3", "#e3a3c4"},
      {"workspace", "workspace", "#4fa3a0", "#6bbfbc"},
      {"context", "context", "#8a94a3", "#8a94a3"},
      {"fragmentation", "fragmentation", "#c3cad3", "#565f6b"}};
  return all;
}

std::string colour_of(std::string_view name) {
  const auto found = std::ranges::find(page_colours(), name, &PageColour::name);
  return found == page_colours().end() ? "var(--unlisted)" : fmt::format("var(--{})", name);
}

std::string label_of(std::string_view name) {
  const auto found = std::ranges::find(page_colours(), name, &PageColour::name);
  if (found != page_colours().end()) return std::string{found->label};
  std::string label{name};
  std::ranges::replace(label, '_', ' ');
  return label;
}

std::string time_words(double seconds) {
  if (seconds >= 1e6) return days_in_words(seconds / seconds_per_day);
  if (seconds >= 10 && seconds < 1000) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1 && seconds < 10) return fmt::format("{:.3f} s", seconds);
  return format(Time{std::llround(seconds * 1e12)});
}

std::string size_words(double bytes) {
  return format(Bytes{std::llround(bytes)});
}

std::string dollar_words(double dollars) {
  if (dollars >= 1e6) return fmt::format("${:.2f}M", dollars / 1e6);
  if (dollars >= 1e4) return fmt::format("${:.0f}k", dollars / 1e3);
  return format(Money{dollars});
}

std::string days_in_words(double days) {
  if (days < 1) return fmt::format("{:.1f} h", days * 24);
  return fmt::format("{:.{}f} days", days, days < 10 ? 2 : days < 100 ? 1 : 0);
}

std::string percent_words(double share) {
  const double percent = 100 * share;
  const bool whole = std::abs(percent - std::round(percent)) < 1e-9;
  return fmt::format("{:.{}f} %", percent, whole ? 0 : 1);
}

std::string count_words(double count) {
  if (count != std::floor(count) && std::abs(count) < 1000) return fmt::format("{:.3g}", count);
  std::string text = fmt::format("{:.0f}", count);
  for (std::size_t at = text.size(); at > 3 && text[at - 4] != '-';) text.insert(at -= 3, ",");
  return text;
}

std::string waterfall_chart(const std::vector<std::pair<std::string, double>>& parts) {
  constexpr double least_share = 5e-4, row = 27, left = 235, right = 800;
  double step = 0, rest = 0;
  for (const auto& [name, time] : parts) step += time;
  std::vector<std::pair<std::string, double>> shown;
  for (const auto& part : parts) {
    if (std::abs(part.second) >= least_share * step) {
      shown.push_back(part);
    } else {
      rest += part.second;
    }
  }
  if (rest != 0) shown.emplace_back("all smaller parts", rest);
  double most = step, at = 0;
  for (const auto& [name, time] : shown) most = std::max(most, at += time);
  const ChartAxis axis{left, right, most};
  const double bottom = 8 + row * static_cast<double>(shown.size() + 1);
  std::string text = svg_begin(bottom + 26, "From the ideal machine to this step");
  text += axis.below(8, bottom, time_words);
  const auto add = [&](double y, const std::string& name, double from, double time,
                       const std::string& colour, bool strong) {
    const double begin = axis.at(std::min(from, from + time));
    const double width = std::max(axis.at(std::abs(time)) - axis.at(0), 1.0);
    const std::string share = fmt::format("{:.1f} %", 100 * time / step);
    text +=
        chart_text(left - 10, y + 15, fitted(name, left - 14), strong ? "strong" : "ink", "end");
    text += chart_box({begin, y + 4, width, row - 9}, colour,
                      fmt::format("{}: {}, {}", name, time_words(time), share), "rx='2'");
    const std::string sign = time < 0 ? "\u2212" : "";
    text += chart_text(885, y + 15, sign + time_words(std::abs(time)), strong ? "strong" : "ink",
                       "end");
    text += chart_text(950, y + 15, share, "faint", "end");
  };
  double y = 8, from = 0;
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto& [name, time] = shown[i];
    const std::string colour = i == 0 ? "var(--good)" : time < 0 ? "var(--gain)" : "var(--loss)";
    add(y, name, from, time, colour, i == 0);
    from += time;
    y += row;
    text += chart_line(axis.at(from), y - 5, axis.at(from), y + 4, "step");
  }
  add(y, "predicted step", 0, step, "var(--total)", true);
  return text + "</svg></div>\n";
}

std::string stacked_chart(const StackedChart& chart) {
  constexpr double left = 10, right = 950, bar = 30;
  double whole = 0;
  for (const ChartBar& each : chart.parts) whole += each.value;
  double most = std::max(whole, chart.limit.value_or(0));
  if (chart.range) most = std::max(most, chart.range->second);
  const ChartAxis axis{left, right, most * 1.02};
  const double top = chart.limit ? 24 : 8;
  std::string body = axis.below(top, top + bar + 14, chart.words);
  double at = 0;
  std::vector<ChartBar> legend;
  for (const ChartBar& each : chart.parts) {
    if (each.value <= 0) continue;
    const std::string words = fmt::format("{} {}", each.label, chart.words(each.value));
    body += chart_box({axis.at(at), top + 2, axis.at(each.value) - axis.at(0), bar}, each.colour,
                      words);
    at += each.value;
    legend.push_back({words, 0, each.colour});
  }
  if (chart.range) {
    const double y = top + bar + 8;
    body += chart_line(axis.at(chart.range->first), y, axis.at(chart.range->second), y, "whisker");
    for (const double end : {chart.range->first, chart.range->second}) {
      body += chart_line(axis.at(end), y - 4, axis.at(end), y + 4, "whisker");
    }
  }
  if (chart.limit) {
    const double x = axis.at(*chart.limit);
    body += chart_line(x, top - 4, x, top + bar + 14, "limit");
    body += chart_text(x - 4, top - 8, chart.limit_label, "limit", "end");
  }
  double bottom = top + bar + 44;
  body += legend_rows(legend, left, bottom);
  return svg_begin(bottom + 4, "Parts of a whole") + body + "</svg></div>\n";
}

std::string range_chart(const RangeChart& chart) {
  constexpr double row = 34, right = 950;
  std::size_t longest = 0;
  double most = chart.mark.value_or(0);
  for (const ChartRange& each : chart.ranges) {
    longest = std::max(longest, each.label.size());
    most = std::max(most, each.p90);
  }
  const double left = std::min(24 + text_width * static_cast<double>(longest), 330.0);
  const ChartAxis axis{left, right, most * 1.06};
  const double top = chart.mark ? 24 : 8;
  const double bottom = top + row * static_cast<double>(chart.ranges.size());
  std::string text = svg_begin(bottom + 26, "Ranges that hold 8 of 10 cases");
  text += axis.below(top, bottom, chart.words);
  double y = top;
  for (const ChartRange& each : chart.ranges) {
    const std::string hint =
        fmt::format("{}: {} to {} in 8 of 10 cases, median {}", each.label, chart.words(each.p10),
                    chart.words(each.p90), chart.words(each.p50));
    text += chart_text(left - 10, y + 21, fitted(each.label, left - 14), "ink", "end");
    text += chart_box(
        {axis.at(each.p10), y + 9, std::max(axis.at(each.p90) - axis.at(each.p10), 1.0), row - 18},
        "var(--band)", hint, "rx='3'");
    text += chart_box({axis.at(each.p50) - 1.5, y + 5, 3, row - 10}, "var(--total)", hint);
    y += row;
  }
  if (chart.mark) {
    const double x = axis.at(*chart.mark);
    const bool near_end = x > chart_width * 0.7;
    text += chart_line(x, top - 4, x, bottom, "limit");
    text += chart_text(near_end ? x - 4 : x + 4, top - 8, chart.mark_label, "limit",
                       near_end ? "end" : "start");
  }
  return text + "</svg></div>\n";
}

std::string bar_chart(const std::vector<ChartBar>& bars, std::string (*words)(double)) {
  constexpr double row = 24, left = 250, right = 820;
  double most = 0;
  for (const ChartBar& each : bars) most = std::max(most, each.value);
  const ChartAxis axis{left, right, most};
  const double bottom = 6 + row * static_cast<double>(bars.size());
  std::string text = svg_begin(bottom + 4, "Bars from zero");
  text += chart_line(left, 4, left, bottom, "grid");
  double y = 6;
  for (const ChartBar& each : bars) {
    const double width = std::max(axis.at(each.value) - left, 1.0);
    text += chart_text(left - 10, y + 14, fitted(each.label, left - 14), "ink", "end");
    text += chart_box({left, y + 3, width, row - 8}, each.colour,
                      fmt::format("{}: {}", each.label, words(each.value)), "rx='2'");
    text += chart_text(left + width + 8, y + 14, words(each.value), "faint");
    y += row;
  }
  return text + "</svg></div>\n";
}

std::string parted_chart(const PartedChart& chart) {
  constexpr double row = 38, left = 110, right = 860, top = 6;
  double most = 0;
  std::vector<double> wholes;
  for (const PartedBar& each : chart.bars) {
    double whole = 0;
    for (const double part : each.parts) whole += part;
    wholes.push_back(whole);
    most = std::max(most, whole);
  }
  const ChartAxis axis{left, right, most};
  const double bottom = top + row * static_cast<double>(chart.bars.size());
  std::string body = axis.below(top, bottom, chart.words);
  std::vector<ChartBar> legend;
  double y = top;
  for (std::size_t i = 0; i < chart.bars.size(); ++i) {
    double at = 0;
    body += chart_text(left - 10, y + 22, fitted(chart.bars[i].label, left - 14), "ink", "end");
    for (std::size_t k = 0; k < chart.classes.size(); ++k) {
      const double value = chart.bars[i].parts.at(k);
      if (value <= 0) continue;
      const ChartBar& of = chart.classes[k];
      body +=
          chart_box({axis.at(at), y + 5, axis.at(value) - left, row - 14}, of.colour,
                    fmt::format("{}, {}: {}", chart.bars[i].label, of.label, chart.words(value)));
      at += value;
    }
    body += chart_text(axis.at(wholes[i]) + 8, y + 22, chart.words(wholes[i]), "strong");
    y += row;
  }
  for (std::size_t k = 0; k < chart.classes.size(); ++k) {
    const bool drawn =
        std::ranges::any_of(chart.bars, [&](const PartedBar& each) { return each.parts[k] > 0; });
    if (drawn) legend.push_back(chart.classes[k]);
  }
  double below = bottom + 30;
  body += legend_rows(legend, left, below);
  return svg_begin(below + 4, "Parts side by side") + body + "</svg></div>\n";
}

std::string difference_chart(const std::vector<ChartBar>& bars, std::string (*words)(double)) {
  constexpr double row = 24, names = 250, left = 350, right = 850;
  double least = 0, most = 0;
  for (const ChartBar& each : bars) {
    least = std::min(least, each.value);
    most = std::max(most, each.value);
  }
  const double span = most > least ? most - least : 1;
  const auto at = [&](double value) { return left + (right - left) * (value - least) / span; };
  const double bottom = 6 + row * static_cast<double>(bars.size());
  std::string text = svg_begin(bottom + 4, "Differences");
  text += chart_line(at(0), 2, at(0), bottom, "step");
  double y = 6;
  for (const ChartBar& each : bars) {
    const bool less = each.value < 0;
    const double begin = at(std::min(each.value, 0.0));
    const double width = std::max(at(std::abs(each.value) + least) - left, 1.0);
    const std::string shown = (less ? "\u2212" : "+") + words(std::abs(each.value));
    text += chart_text(names - 10, y + 14, fitted(each.label, names - 14), "ink", "end");
    text += chart_box({begin, y + 3, width, row - 8}, each.colour,
                      fmt::format("{}: {}", each.label, shown), "rx='2'");
    text += chart_text(less ? begin - 8 : begin + width + 8, y + 14, shown, "faint",
                       less ? "end" : "start");
    y += row;
  }
  return text + "</svg></div>\n";
}

namespace {

/// Ends of both axes: what the best and the limits need, and no more than all points need.
std::pair<double, double> scatter_ends(const ScatterChart& chart) {
  const bool some_best = std::ranges::any_of(chart.points, &ScatterPoint::best);
  double all_x = 0, all_y = 0, best_x = chart.most_x.value_or(0), best_y = chart.most_y.value_or(0);
  for (const ScatterPoint& each : chart.points) {
    all_x = std::max(all_x, each.x.p90);
    all_y = std::max(all_y, each.y.p90);
    if (each.best || !some_best) {
      best_x = std::max(best_x, each.x.p90);
      best_y = std::max(best_y, each.y.p90);
    }
  }
  constexpr double room = 1.6;  // for what is not best
  return {std::max(best_x, std::min(all_x, room * best_x)),
          std::max(best_y, std::min(all_y, room * best_y))};
}

std::string scatter_frame(const ScatterChart& chart, const ChartAxis& x, const ChartAxis& y,
                          const SvgBox& box, PlacedLabels& labels) {
  std::string text = x.below(box.top, box.bottom(), chart.x_words);
  for (const auto& [value, label] : y.ticks(chart.y_words)) {
    text += chart_line(box.left, y.at(value), box.right(), y.at(value), "grid");
    text += chart_text(box.left - 8, y.at(value) + 4, label, "faint", "end");
  }
  text +=
      chart_text((box.left + box.right()) / 2, box.bottom() + 36, chart.x_title, "ink", "middle");
  text += chart_text(box.left - 60, box.top - 10, chart.y_title, "ink");
  if (chart.most_x) {
    const double at = x.at(*chart.most_x);
    const std::string words = chart.x_words(*chart.most_x);
    const double wide = text_width * static_cast<double>(words.size());
    text += chart_line(at, box.top, at, box.bottom(), "limit");
    text += chart_text(at - 5, box.top + 12, words, "limit", "end");
    labels.avoid({at - 5 - wide, box.top, wide + 6, 16});
  }
  if (chart.most_y) {
    const double at = y.at(*chart.most_y);
    const std::string words = chart.y_words(*chart.most_y);
    const double wide = text_width * static_cast<double>(words.size());
    text += chart_line(box.left, at, box.right(), at, "limit");
    text += chart_text(box.right() - 4, at - 6, words, "limit", "end");
    labels.avoid({box.right() - 4 - wide, at - 18, wide, 16});
  }
  return text;
}

}  // namespace

std::string scatter_chart(const ScatterChart& chart) {
  constexpr double left = 80, right = 930, top = 26, bottom = 380, line = 14;
  const auto [end_x, end_y] = scatter_ends(chart);
  const SvgBox box{left, top, right - left, bottom - top};
  const ChartAxis x{left, right, end_x * 1.06}, y{bottom, top, end_y * 1.06};
  PlacedLabels labels{box};
  std::string text = svg_begin(bottom + 44, chart.x_title + " against " + chart.y_title);
  text += scatter_frame(chart, x, y, box, labels);
  std::size_t beyond = 0;
  std::string best, words;  // above all other points
  for (const ScatterPoint& each : chart.points) {
    const double px = x.at(each.x.p50), py = y.at(each.y.p50);
    if (px > right || py < top) {
      ++beyond;
      continue;
    }
    const std::string hint =
        fmt::format("{}: {} ({} to {}), {} ({} to {})", each.label, chart.x_words(each.x.p50),
                    chart.x_words(each.x.p10), chart.x_words(each.x.p90), chart.y_words(each.y.p50),
                    chart.y_words(each.y.p10), chart.y_words(each.y.p90));
    std::string& own = each.best ? best : text;
    own += fmt::format("<g class='point {}'><title>{}</title>\n", each.best ? "best" : "other",
                       markup(hint));
    if (each.best) {
      own += chart_line(x.at(each.x.p10), py, x.at(each.x.p90), py, "whisker");
      own += chart_line(px, y.at(each.y.p10), px, y.at(each.y.p90), "whisker");
      labels.avoid({px - 5, py - 5, 10, 10});
    }
    own += fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='{}'/></g>\n", px, py, each.best ? 5 : 4);
  }
  for (const ScatterPoint& each : chart.points) {
    if (!each.best) continue;
    const double wide = text_width * static_cast<double>(each.label.size());
    const double px = x.at(each.x.p50), py = y.at(each.y.p50);
    const auto placed = labels.place(px, py, wide, line);
    if (!placed) continue;
    if (placed->bottom() < py - line || placed->top > py + line) {
      best += chart_line(px, py, placed->left > px ? placed->left : placed->right(),
                         placed->top + line / 2, "lead");
    }
    words += chart_text(placed->left, placed->top + 11, each.label, "ink halo");
  }
  text += best + words + "</svg></div>\n";
  if (beyond == 0) return text;
  return text + fmt::format("<p class='note'>{} more beyond the axes.</p>\n", beyond);
}

namespace {

/// Shares of busy time by class and part of one queue, stacked.
std::string queue_rows(const Node& queue, std::size_t parts, double left, double right, double top,
                       double height) {
  std::vector<std::pair<std::string, std::vector<double>>> by_class;
  for (const Node& run : queue["busy"].elements()) {
    const auto most = static_cast<std::int64_t>(parts);
    const auto first = static_cast<std::size_t>(run.at(0).integer(0, most - 1));
    const auto count = static_cast<std::size_t>(run.at(1).integer(1, most));
    const auto name = run.at(2).as<std::string>();
    const double share = run.at(3).as<double>();
    auto found = std::ranges::find(by_class, name, &decltype(by_class)::value_type::first);
    if (found == by_class.end()) {
      by_class.emplace_back(name, std::vector<double>(parts, 0.0));
      found = by_class.end() - 1;
    }
    for (std::size_t i = first; i < std::min(first + count, parts); ++i) found->second[i] = share;
  }
  const double wide = (right - left) / static_cast<double>(parts);
  std::vector<double> below(parts, 0.0);
  std::string text;
  for (const auto& [name, shares] : by_class) {
    std::string path;
    for (std::size_t i = 0; i < parts;) {
      std::size_t end = i + 1;
      while (end < parts && shares[end] == shares[i] && below[end] == below[i]) ++end;
      if (shares[i] > 0) {
        const double bottom = top + height * (1 - std::min(below[i], 1.0));
        const double high = height * std::min(shares[i], 1 - std::min(below[i], 1.0));
        path += fmt::format(
            "M{:.2f} {:.2f}h{:.2f}v{:.2f}h{:.2f}z", left + wide * static_cast<double>(i), bottom,
            wide * static_cast<double>(end - i), -high, -wide * static_cast<double>(end - i));
      }
      i = end;
    }
    for (std::size_t i = 0; i < parts; ++i) below[i] += shares[i];
    text += fmt::format("<path d='{}' style='fill:{}'><title>{}</title></path>\n", path,
                        colour_of(name), markup(label_of(name)));
  }
  return text;
}

std::string memory_area(const std::vector<double>& bytes, const ChartAxis& axis, double left,
                        double right, double bottom) {
  const double wide = (right - left) / static_cast<double>(bytes.size());
  std::string path = fmt::format("M{:.1f} {:.1f}", left, bottom);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    path +=
        fmt::format("V{:.1f}H{:.1f}", axis.at(bytes[i]), left + wide * static_cast<double>(i + 1));
  }
  return fmt::format("<path d='{}V{:.1f}z' style='fill:var(--memory)'/>\n", path, bottom);
}

}  // namespace

std::string timeline_chart(const Node& timeline, double step, double available) {
  constexpr double left = 112, right = 950, memory = 52;
  constexpr std::int64_t most_parts = 100'000;
  const auto parts = static_cast<std::size_t>(timeline["buckets"].integer(1, most_parts));
  const ChartAxis time{left, right, step};
  double y = 6;
  std::string text;
  std::vector<ChartBar> legend;
  for (const Node& stage : timeline["stages"].elements()) {
    text += chart_text(4, y + 12, stage["name"].as<std::string>(), "strong");
    y += 19;
    for (const Node& queue : stage["queues"].elements()) {
      const auto name_of_queue = queue["name"].as<std::string>();
      const double lane = name_of_queue == "compute" ? 34 : 18;
      text += chart_text(left - 8, y + lane / 2 + 4, name_of_queue, "faint", "end");
      text += chart_box({left, y + 1, right - left, lane - 3}, "var(--lane)", "");
      text += queue_rows(queue, parts, left, right, y + 1, lane - 3);
      for (const Node& run : queue["busy"].elements()) {
        const auto name = run.at(2).as<std::string>();
        const bool listed = std::ranges::any_of(
            legend, [&](const ChartBar& each) { return each.colour == colour_of(name); });
        if (!listed) legend.push_back({label_of(name), 0, colour_of(name)});
      }
      y += lane;
    }
    std::vector<double> bytes;
    for (const Node& each : stage["memory_bytes"].elements()) bytes.push_back(each.as<double>());
    if (!bytes.empty()) {
      const double peak = *std::ranges::max_element(bytes);
      const ChartAxis high{y + memory, y + 4, std::max(peak, available) * 1.02};
      text += memory_area(bytes, high, left, right, y + memory);
      text += chart_line(left, high.at(available), right, high.at(available), "limit");
      text += chart_line(left, y + memory, right, y + memory, "grid");
      text += chart_text(left - 8, y + memory / 2 + 2, "memory", "faint", "end");
      text += chart_text(left - 8, y + memory / 2 + 17, "peak " + size_words(peak), "faint", "end");
      y += memory;
    }
    y += 14;
  }
  for (const auto& [value, label] : time.ticks(time_words)) {
    text += chart_line(time.at(value), 22, time.at(value), y, "over");
    text += tick_text(time.at(value), y + 14, label);
  }
  y += 30;
  text += legend_rows(legend, left, y);
  return svg_begin(y + 4, "Timeline of the step, with memory") + text + "</svg></div>\n";
}

std::string load_chart(const LoadChart& load) {
  constexpr double top = 8, height = 150;
  std::string text = svg_begin(height + 16, "What is connected, and how busy it is");
  const auto part = [&](const SvgBox& box, std::string_view head, std::string_view line,
                        double share, std::string_view colour) {
    text += fmt::format(
        "<rect x='{:.0f}' y='{:.0f}' width='{:.0f}' height='{:.0f}' rx='6' class='part'/>\n",
        box.left, box.top, box.width, box.height);
    text += chart_text(box.left + 10, box.top + 20, fitted(head, box.width - 20), "strong");
    text += chart_text(box.left + 10, box.top + 37, fitted(line, box.width - 20), "faint");
    const double full = box.width - 20, y = box.top + box.height - 14;
    text += chart_box({box.left + 10, y, full, 6}, "var(--lane)", "", "rx='3'");
    text += chart_box({box.left + 10, y, std::max(full * std::min(share, 1.0), 0.5), 6}, colour,
                      percent_words(share), "rx='3'");
    text += chart_text(box.left + 10, y - 6, "busy " + percent_words(share), "ink");
  };
  text += fmt::format("<rect x='8' y='{}' width='660' height='{}' rx='9' class='node'/>\n", top,
                      height);
  text += chart_text(20, top + 20,
                     fmt::format("{} node{}", count_words(load.nodes), load.nodes == 1 ? "" : "s"),
                     "strong");
  text += chart_line(216, top + 88, 236, top + 88, "wire");
  text += chart_line(440, top + 88, 460, top + 88, "wire");
  part({20, top + 34, 196, 100}, fmt::format("{} GPUs each", count_words(load.gpus_per_node)),
       load.gpu, load.sm, "var(--gemm)");
  part({236, top + 34, 204, 100}, "links inside the node", "NVLink, PCIe", load.nvlink,
       "var(--tp)");
  part({460, top + 34, 196, 100},
       fmt::format("{} NIC{} each", count_words(load.nics_per_node),
                   load.nics_per_node == 1 ? "" : "s"),
       "the slowest rank's", load.nic, "var(--dp)");
  text += chart_line(656, top + 88, 716, top + 88, "wire");
  text += fmt::format("<rect x='716' y='{}' width='232' height='100' rx='6' class='{}'/>\n",
                      top + 34, load.links_over_capacity > 0 ? "part full" : "part");
  text += chart_text(728, top + 54, "fabric", "strong");
  text += chart_text(728, top + 72, fitted(load.fabric, 208), "faint");
  text +=
      chart_text(728, top + 116,
                 load.links_over_capacity > 0
                     ? fmt::format("{} links over capacity", count_words(load.links_over_capacity))
                     : "no link over capacity",
                 "ink");
  return text + "</svg></div>\n";
}

}  // namespace orrery::scenarios
