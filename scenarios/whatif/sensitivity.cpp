#include "scenarios/whatif/sensitivity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "models/plan/fields.hpp"
#include "models/prediction/lowered_step.hpp"
#include "scenarios/drawing/svg.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/unpriced.hpp"
#include "scenarios/whatif/rate_groups.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

constexpr double one_percent = 0.01, ten_percent = 0.1;
constexpr std::size_t most_listed_numbers = 20, most_drawn_numbers = 15;
constexpr int digits_of_needed = 6;

/// Members that say where numbers come from, or how well they are known.
bool is_about_numbers(const std::string& key) {
  constexpr std::string_view keys[] = {"sources",   "notes",   "measured",   "published",
                                       "residuals", "aliases", "assumptions"};
  return std::ranges::find(keys, key) != std::end(keys);
}

std::string escaped_pointer_step(std::string step) {
  for (std::size_t i = 0; i < step.size(); ++i) {
    if (step[i] != '~' && step[i] != '/') continue;
    step.replace(i, 1, step[i] == '~' ? "~0" : "~1");
    ++i;
  }
  return step;
}

/// Pointers of all numbers below a value.
void collect_numbers(const Json& value, const std::string& pointer,
                     std::vector<std::string>& found) {
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      if (!is_about_numbers(key))
        collect_numbers(member, pointer + "/" + escaped_pointer_step(key), found);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      collect_numbers(value[i], fmt::format("{}/{}", pointer, i), found);
    }
  } else if (scaled_number(value, 1) && !why_unpriced(pointer)) {
    found.push_back(pointer);
  }
}

/// What is derived of one prediction.
struct SteppedFigures {
  Time step{};
  double cost = 0, energy = 0, memory = 0;
};

/// Predicts a scenario with one number changed.
class WithNumberChanged {
 public:
  WithNumberChanged(const Scenario& scenario, std::optional<double> headroom)
      : scenario_{scenario}, headroom_{headroom}, question_{question_of(scenario)} {
    if (models::lowers_once(question_)) lowered_ = models::lower_step(question_);
    stated_ = *figures_of(question_, true);
  }

  const SteppedFigures& stated() const { return stated_; }
  std::string degrees() const { return models::degrees_of(question_.plan); }

  /// Nothing where the changed number is refused.
  std::optional<SteppedFigures> at(const std::string& pointer, double factor) const {
    const Json* value = nullptr;
    try {
      value = &scenario_.json().at(Json::json_pointer{pointer});
      const auto changed = scaled_number(*value, factor);
      if (!changed) return std::nullopt;
      const Json& cluster = scenario_.json().at("cluster");
      const bool rate = rate_group(pointer, cluster).has_value();
      return figures_of(question_of(scenario_.replace({{pointer, *changed}})), rate);
    } catch (const InputError&) {
      return std::nullopt;
    }
  }

 private:
  models::Question question_of(const Scenario& scenario) const {
    models::Question question = scenario.question();
    if (headroom_) question.headroom = *headroom_;
    return question;
  }
  /// same_program  whether the Program is that of the question as stated
  std::optional<SteppedFigures> figures_of(const models::Question& question,
                                           bool same_program) const {
    const models::Prediction found = !models::lowers_once(question) ? models::predict(question)
                                     : same_program && lowered_.program
                                         ? models::predict(question, lowered_)
                                         : models::predict(question, models::lower_step(question));
    return SteppedFigures{
        .step = found.step,
        .cost = found.cost ? found.cost->count() : 0,
        .energy = found.energy.count(),
        .memory = static_cast<double>(found.memory.at(found.fullest).total.count())};
  }

  const Scenario& scenario_;
  std::optional<double> headroom_;
  models::Question question_;
  models::LoweredStep lowered_;
  SteppedFigures stated_;
};

/// Percent of a figure per percent of a number that it was found less and more of.
class Elasticity {
 public:
  Elasticity(const SteppedFigures& stated, const std::optional<SteppedFigures>& less,
             const std::optional<SteppedFigures>& more)
      : low_{less ? *less : stated},
        high_{more ? *more : stated},
        width_{(more ? std::log1p(one_percent) : 0) - (less ? std::log1p(-one_percent) : 0)} {}

  template <class Figure>
  double of(Figure figure) const {
    const double low = figure(low_), high = figure(high_);
    return low > 0 && high > 0 && low != high ? std::log(high / low) / width_ : 0;
  }

 private:
  const SteppedFigures &low_, &high_;
  double width_;
};

std::optional<Sensitivity> number_sensitivity(const WithNumberChanged& changed,
                                              const Scenario& scenario,
                                              const std::string& pointer) {
  const auto less = changed.at(pointer, 1 - one_percent);
  const auto more = changed.at(pointer, 1 + one_percent);
  if (!less && !more) return std::nullopt;
  const SteppedFigures& stated = changed.stated();
  const Elasticity elasticity{stated, less, more};
  const Json& value = scenario.json().at(Json::json_pointer{pointer});
  Sensitivity found{.pointer = pointer,
                    .value = value.is_string() ? value.get<std::string>() : value.dump(),
                    .step = elasticity.of([](const auto& each) { return seconds(each.step); }),
                    .energy = elasticity.of([](const auto& each) { return each.energy; }),
                    .memory = elasticity.of([](const auto& each) { return each.memory; }),
                    .cost = {}};
  const double cost = elasticity.of([](const auto& each) { return each.cost; });
  if (stated.cost > 0) found.cost = cost;
  const bool moves = found.step != 0 || found.energy != 0 || found.memory != 0 || cost != 0;
  return moves ? std::optional{found} : std::nullopt;
}

}  // namespace

std::optional<Json> scaled_number(const Json& value, double factor, int digits) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    if (number == 0) return std::nullopt;
    return Json(std::stod(fmt::format("{:.{}g}", number * factor, digits)));
  }
  if (!value.is_string()) return std::nullopt;
  const std::string& text = value.get_ref<const std::string&>();
  const std::size_t begin = text.starts_with('$') ? 1 : 0;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc{} || number == 0) return std::nullopt;
  const std::string_view unit{end, static_cast<std::size_t>(text.data() + text.size() - end)};
  if (begin == 0 && !unit.starts_with(' ')) return std::nullopt;  // "2024-10", "8x"
  return Json(fmt::format("{}{:.{}g}{}", text.substr(0, begin), number * factor, digits, unit));
}

SensitivityReport sensitivity(const Scenario& scenario, std::optional<double> headroom,
                              const Workers& workers) {
  const WithNumberChanged changed{scenario, headroom};
  SensitivityReport report{
      .scenario = scenario.name(), .step = changed.stated().step, .numbers = {}};
  std::vector<std::string> pointers;
  for (const char* section : {"model", "cluster", "plan", "software", "data"}) {
    if (!scenario.json().contains(section)) continue;
    collect_numbers(scenario.json().at(section), fmt::format("/{}", section), pointers);
  }
  report.tried = pointers.size();
  std::vector<std::optional<Sensitivity>> found(pointers.size());
  report.stopped = !workers.work_through(pointers.size(), [&](std::size_t i, unsigned) {
    found[i] = number_sensitivity(changed, scenario, pointers[i]);
  });
  for (std::optional<Sensitivity>& each : found) {
    if (each) report.numbers.push_back(*std::move(each));
  }
  std::ranges::stable_sort(report.numbers, [](const Sensitivity& a, const Sensitivity& b) {
    return std::abs(a.step) != std::abs(b.step)
               ? std::abs(a.step) > std::abs(b.step)
               : std::abs(a.cost.value_or(0)) > std::abs(b.cost.value_or(0));
  });
  if (report.stopped) return report;
  const Workers quiet{.threads = workers.threads, .progress = {}};
  quiet.work_through(std::min(most_drawn_numbers, report.numbers.size()),
                     [&](std::size_t i, unsigned) {
                       Sensitivity& each = report.numbers[i];
                       for (const int more : {0, 1}) {
                         const double factor = 1 + (more == 1 ? ten_percent : -ten_percent);
                         if (const auto at = changed.at(each.pointer, factor)) {
                           each.tenth[static_cast<std::size_t>(more)] = at->step;
                         }
                       }
                     });
  return report;
}

namespace {

/// Finds the factor of one number at which two plans take equally long.
class CrossingSearch {
 public:
  CrossingSearch(const WithNumberChanged& slower, const WithNumberChanged& faster,
                 const std::string& pointer)
      : slower_{slower}, faster_{faster}, pointer_{pointer} {}

  /// The logarithm of the factor; nothing where there is none within reach.
  std::optional<double> run() {
    const double stated = std::log(ratio(slower_.stated().step, faster_.stated().step));
    // The direction in which the gap closes; counts have fractions refused on both sides.
    double last = 0, last_gap = stated;
    std::optional<double> next = first_guess(stated);
    for (int i = 0; i < most_steps && next && std::abs(*next) <= reach; ++i) {
      const auto gap = gap_at(*next);
      if (!gap) return std::nullopt;
      if (std::abs(*gap) < close) return next;
      if (*gap == last_gap) return std::nullopt;
      const double secant = *next - *gap * (*next - last) / (*gap - last_gap);
      last = *next;
      last_gap = *gap;
      next = secant;
    }
    return std::nullopt;
  }

 private:
  static constexpr int most_steps = 12;
  static constexpr double close = 1e-4;    // of ln(slower / faster)
  static constexpr double reach = 1.3863;  // ln 4

  std::optional<double> gap_at(double log_factor) const {
    const double factor = std::exp(log_factor);
    const auto slower = slower_.at(pointer_, factor), faster = faster_.at(pointer_, factor);
    if (!slower || !faster) return std::nullopt;
    return std::log(ratio(slower->step, faster->step));
  }
  std::optional<double> first_guess(double stated) const {
    for (const double tried : {std::log1p(one_percent), std::log1p(-one_percent)}) {
      const auto gap = gap_at(tried);
      if (!gap || *gap == stated) continue;
      const double guess = -stated * tried / (*gap - stated);
      return std::clamp(guess, -reach, reach);
    }
    return std::nullopt;
  }

  const WithNumberChanged& slower_;
  const WithNumberChanged& faster_;
  const std::string& pointer_;
};

}  // namespace

CrossingReport crossings(const Scenario& scenario, const Scenario& versus,
                         std::optional<double> headroom, const Workers& workers) {
  const WithNumberChanged first{scenario, headroom}, second{versus, headroom};
  CrossingReport report;
  report.scenario = scenario.name();
  report.versus_is_faster = second.stated().step < first.stated().step;
  const WithNumberChanged& faster = report.versus_is_faster ? second : first;
  const WithNumberChanged& slower = report.versus_is_faster ? first : second;
  report.faster = faster.degrees();
  report.slower = slower.degrees();
  report.faster_step = faster.stated().step;
  report.slower_step = slower.stated().step;
  std::vector<std::string> pointers;
  for (const char* section : {"model", "cluster", "software", "data"}) {
    if (!scenario.json().contains(section)) continue;
    collect_numbers(scenario.json().at(section), fmt::format("/{}", section), pointers);
  }
  std::vector<std::optional<Crossing>> found(pointers.size());
  report.stopped = !workers.work_through(pointers.size(), [&](std::size_t i, unsigned) {
    const auto log_factor = CrossingSearch{slower, faster, pointers[i]}.run();
    if (!log_factor) return;
    const double factor = std::exp(*log_factor);
    const Json& value = scenario.json().at(Json::json_pointer{pointers[i]});
    const auto at = faster.at(pointers[i], factor);
    const auto words = [](const Json& number) {
      return number.is_string() ? number.get<std::string>() : number.dump();
    };
    found[i] = Crossing{.pointer = pointers[i],
                        .value = words(value),
                        .needed = words(*scaled_number(value, factor, digits_of_needed)),
                        .factor = factor,
                        .step = at ? at->step : Time{}};
  });
  for (std::optional<Crossing>& each : found) {
    if (each) report.numbers.push_back(*std::move(each));
  }
  std::ranges::stable_sort(report.numbers, {},
                           [](const Crossing& each) { return std::abs(std::log(each.factor)); });
  return report;
}

Json to_json(const CrossingReport& report) {
  Json numbers = Json::array();
  for (const Crossing& each : report.numbers) {
    numbers.push_back({{"pointer", each.pointer},
                       {"value", each.value},
                       {"needed", each.needed},
                       {"factor", each.factor},
                       {"step_time_s", seconds(each.step)}});
  }
  return {{"faster", report.faster},
          {"slower", report.slower},
          {"versus_is_faster", report.versus_is_faster},
          {"faster_step_time_s", seconds(report.faster_step)},
          {"slower_step_time_s", seconds(report.slower_step)},
          {"numbers", std::move(numbers)}};
}

std::string text_of(const CrossingReport& report, bool colour) {
  std::string text = "\n" +
                     toned(fmt::format("What would have to change for {} to win", report.slower),
                           Tone::bold, colour) +
                     "\n";
  text += fmt::format(
      "  it takes {}, {} takes {} ({:+.1f} %); each number alone, within a factor "
      "of 4\n\n",
      step_part(report.slower_step, report.slower_step), report.faster,
      step_part(report.faster_step, report.slower_step),
      100 * (ratio(report.faster_step, report.slower_step) - 1));
  if (report.stopped) return text + "Stopped before all numbers were tried.\n";
  if (report.numbers.empty()) return text + "  no single number would\n";
  TextTable table{{"<number", "stated", "needed", "change"}};
  for (std::size_t i = 0; i < std::min(most_listed_numbers, report.numbers.size()); ++i) {
    const Crossing& each = report.numbers[i];
    table.add(
        {each.pointer, each.value, each.needed, fmt::format("{:+.1f} %", 100 * (each.factor - 1))});
  }
  return text + table.text(colour);
}

Json to_json(const SensitivityReport& report) {
  const auto time = [](const std::optional<Time>& step) {
    return step ? Json(seconds(*step)) : Json(nullptr);
  };
  Json numbers = Json::array();
  for (const Sensitivity& each : report.numbers) {
    numbers.push_back(
        {{"pointer", each.pointer},
         {"value", each.value},
         {"step", each.step},
         {"cost", each.cost ? Json(*each.cost) : Json(nullptr)},
         {"energy", each.energy},
         {"memory", each.memory},
         {"step_time_s", {{"less", time(each.tenth[0])}, {"more", time(each.tenth[1])}}}});
  }
  return numbers;
}

std::string text_of(const SensitivityReport& report, bool colour) {
  std::string text = "\n" + toned("What the answer depends on", Tone::bold, colour) + "\n";
  text +=
      "  percent of each figure per percent of the number; numbers below 0.001 are left out\n\n";
  TextTable table{{"<number", "stated", "step", "$", "energy", "memory"}};
  const auto cell = [](double elasticity) {
    return std::abs(elasticity) < 0.0005 ? std::string{} : fmt::format("{:+.3f}", elasticity);
  };
  std::size_t shown = 0, smaller = 0;
  for (const Sensitivity& each : report.numbers) {
    const double most = std::max({std::abs(each.step), std::abs(each.cost.value_or(0)),
                                  std::abs(each.energy), std::abs(each.memory)});
    if (shown == most_listed_numbers || most < 0.001) {
      ++smaller;
      continue;
    }
    table.add({each.pointer, each.value, cell(each.step), cell(each.cost.value_or(0)),
               cell(each.energy), cell(each.memory)});
    ++shown;
  }
  text += table.text(colour);
  if (smaller > 0) text += fmt::format("  {} more numbers move it less\n", smaller);
  if (report.stopped) text += "\nStopped before the other numbers.\n";
  return text;
}

std::string picture_of(const SensitivityReport& report) {
  std::vector<const Sensitivity*> drawn;
  for (const Sensitivity& each : report.numbers) {
    const bool any = each.tenth[0] || each.tenth[1];
    if (any && each.step != 0 && drawn.size() < most_drawn_numbers) drawn.push_back(&each);
  }
  constexpr double row = 26, width = 980;
  const SvgBox box{430, 60, 440, row * static_cast<double>(std::max<std::size_t>(1, drawn.size()))};
  double reach = 1e-9;  // of the step, as a share
  const auto change = [&](const std::optional<Time>& step) {
    return step ? ratio(*step, report.step) - 1 : 0.0;
  };
  for (const Sensitivity* each : drawn) {
    for (const auto& step : each->tenth) reach = std::max(reach, std::abs(change(step)));
  }
  reach *= 1.15;
  const auto x = [&](double share) { return box.left + box.width * (0.5 + share / reach / 2); };
  std::string text = svg_text(
      20, 22, fmt::format("{}: the step with 10 % less and 10 % more of a number", report.scenario),
      "font-weight='bold'");
  text += svg_rectangle({20, 33, 10, 10}, fmt::format("fill='{}'", svg_colours[1])) +
          svg_text(35, 42, "10 % less", "") +
          svg_rectangle({110, 33, 10, 10}, fmt::format("fill='{}'", svg_colours[0])) +
          svg_text(125, 42, "10 % more", "");
  const double tick = svg_tick(2 * reach);
  for (double at = -std::floor(reach / tick) * tick; at <= reach; at += tick) {
    text += svg_line(x(at), box.top, x(at), box.bottom(), "stroke='#e3e3e3'");
    text += svg_text(x(at), box.bottom() + 17,
                     std::abs(at) < tick / 2 ? step_part(report.step, report.step)
                                             : fmt::format("{:+.3g} %", 100 * at),
                     "text-anchor='middle'");
  }
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const Sensitivity& each = *drawn[i];
    const double top = box.top + row * static_cast<double>(i) + 4;
    text +=
        svg_text(box.left - 10, top + 13, fmt::format("{}  {}", each.pointer.substr(1), each.value),
                 "text-anchor='end'");
    for (const std::size_t more : {0, 1}) {
      const double share = change(each.tenth[more]);
      if (share == 0) continue;
      const double left = std::min(x(0), x(share));
      text += svg_rectangle({left, top, std::max(1.0, std::abs(x(share) - x(0))), row - 8},
                            fmt::format("fill='{}'", svg_colours[more == 0 ? 1 : 0]));
      text +=
          svg_text(x(share) + (share > 0 ? 4 : -4), top + 13, fmt::format("{:+.1f} %", 100 * share),
                   share > 0 ? "font-size='10'" : "font-size='10' text-anchor='end'");
    }
  }
  if (drawn.empty()) text += svg_text(box.left, box.top + 18, "no number moves the step", "");
  text += svg_line(x(0), box.top, x(0), box.bottom(), "stroke='#555'");
  return svg_document(width, box.bottom() + 34, text);
}

}  // namespace orrery::scenarios
