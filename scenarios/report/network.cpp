#include <fmt/format.h>

#include <algorithm>

#include "scenarios/report/sections.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_lines = 6;
constexpr std::size_t most_named = 3;  // to whom

}  // namespace

std::string network_section(const ReportInputs& in) {
  const models::NetworkAnswer& found = in.prediction.network;
  if (found.evaluation == "static") return {};
  std::string text = heading("Network", in.options);
  text += paragraph(fmt::format("{}: {}", found.evaluation, found.why), 2, in.options);
  if (found.evaluation == "maps") return text;
  const Time alone = in.prediction.step - found.contention;
  text += fmt::format(
      "  alone {}, contention {} ({:+.2f} %)\n", step_part(alone, in.prediction.step),
      step_part(found.contention, in.prediction.step), 100 * ratio(found.contention, alone));
  for (std::size_t i = 0; i < std::min(most_lines, found.losses.size()); ++i) {
    const models::TrafficLoss& loss = found.losses[i];
    std::string to;
    for (std::size_t k = 0; k < std::min(most_named, loss.to.size()); ++k) {
      to += fmt::format("{} {} {}", k == 0 ? ", to" : ",", percent(loss.to[k].second),
                        loss.to[k].first);
    }
    text += fmt::format("  {:>10}  lost by {}{}\n", step_part(loss.lost, in.prediction.step),
                        loss.name, to);
  }
  for (std::size_t i = 0; i < std::min(most_lines, found.links.size()); ++i) {
    const models::FullLinks& link = found.links[i];
    text += fmt::format("  {:>10}  over capacity: {}{}\n",
                        step_part(link.overloaded, in.prediction.step), link.name,
                        link.alike > 1 ? fmt::format(" and {} like it", link.alike - 1) : "");
  }
  return text;
}

}  // namespace orrery::scenarios
