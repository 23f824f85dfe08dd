#include <fmt/format.h>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/whatif/measured_step.hpp"

namespace orrery::scenarios {

namespace {

double error_of(const ExplainedStep& found, Time step) {
  return 100 * (ratio(step, found.measured) - 1);
}

}  // namespace

Json to_json(const ExplainedStep& found) {
  Json causes = Json::array();
  for (const Explanation& each : found.explanations) {
    causes.push_back({{"cause", each.cause},
                      {"flags", each.flags.empty() ? Json(nullptr) : Json(each.flags)},
                      {"step_time_s", seconds(each.step)},
                      {"error_pct", error_of(found, each.step)},
                      {"prior", each.prior},
                      {"weight", each.weight},
                      {"basis", each.basis}});
  }
  return {{"step_time_s", seconds(found.measured)},
          {"error_pct", error_of(found, found.predicted)},
          {"inside_range", found.inside_range},
          {"weight_of_none", found.weight_of_none},
          {"explanations", std::move(causes)}};
}

std::string_view words_without_explanation(bool inside_range) {
  return inside_range ? "nothing is left to explain"
                      : "nothing that was tried explains it; check its unit and what ran";
}

std::string text_of(const ExplainedStep& found, bool colour) {
  std::string text =
      "\n" + toned("What would explain the measured step", Tone::bold, colour) + "\n";
  text += fmt::format("  measured {}, predicted {} ({:+.1f} %); {} the range of 8 in 10 cases\n",
                      step_part(found.measured, found.measured),
                      step_part(found.predicted, found.measured), error_of(found, found.predicted),
                      found.inside_range ? "inside" : "outside");
  if (found.explanations.empty()) {
    return text + fmt::format("  {}\n", words_without_explanation(found.inside_range));
  }
  text += "  each cause is tried alone; its weight counts how likely it was before\n\n";
  const auto add = [&](double weight, Time step, const std::string& cause) {
    text += fmt::format("  {:>7}  {:>8}  {:+6.1f} %  {}\n", percent(weight),
                        step_part(step, found.measured), error_of(found, step), cause);
  };
  bool none_stands = false;
  const auto add_none = [&] {
    if (!none_stands) {
      add(found.weight_of_none, found.predicted, "none of these: the prediction's own error");
    }
    none_stands = true;
  };
  for (const Explanation& each : found.explanations) {
    if (each.weight < found.weight_of_none) add_none();
    add(each.weight, each.step, each.cause);
    const std::string prior = fmt::format("prior {:.2f}: {}", each.prior, each.basis);
    text += fmt::format("{:31}{}\n", "", toned(prior, Tone::faint, colour));
  }
  add_none();
  return text;
}

}  // namespace orrery::scenarios
