#include <fmt/format.h>

#include <algorithm>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t name_columns = 34;
constexpr std::size_t number_columns = 24;  // time, share and blanks between

Tone tone_of(std::size_t index, Time time) {
  if (index == 0) return Tone::good;
  return time.count() < 0 ? Tone::gain : Tone::loss;
}

}  // namespace

std::string waterfall_section(const ReportInputs& in) {
  const Time step = in.prediction.step;
  const auto columns = static_cast<std::size_t>(std::max(in.options.width, 0));
  const std::size_t width =
      std::max<std::size_t>(10, columns - std::min(columns, name_columns + number_columns));
  // A negative part means that the sum before it exceeds the step: the full width is the largest
  // sum.
  Time furthest = step, at{};
  for (const models::WaterfallPart& part : in.prediction.waterfall) {
    at += part.time;
    furthest = std::max(furthest, at);
  }
  const auto line = [&](std::string_view name, Time time, double begin, double end, Tone tone) {
    return fmt::format("  {:<32}{:>10}{:>9}   {}\n", name, step_part(time, step),
                       percent(ratio(time, step)),
                       toned(bar(begin, end, width), tone, in.options.colour));
  };
  std::string text = heading("From the ideal machine to this step", in.options);
  Time before{};
  for (std::size_t i = 0; i < in.prediction.waterfall.size(); ++i) {
    const models::WaterfallPart& part = in.prediction.waterfall[i];
    const Time after = before + part.time;
    if (part.time.count() != 0) {
      text += line(part.name, part.time, ratio(std::min(before, after), furthest),
                   ratio(std::max(before, after), furthest), tone_of(i, part.time));
    }
    before = after;
  }
  return text + line("predicted step", step, 0, ratio(step, furthest), Tone::bold);
}

}  // namespace orrery::scenarios
