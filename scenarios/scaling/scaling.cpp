#include "scenarios/scaling/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/errors.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_points = 1000;
constexpr std::int64_t most_gpus = std::int64_t{1} << 20;
constexpr std::string_view form = "64:16384:x2, 64:512:64 or 64,96,128";
constexpr Words<Scaling, 2> scaling_words{{{Scaling::weak, "weak"}, {Scaling::strong, "strong"}}};

[[noreturn]] void refuse_counts(std::string_view found) {
  throw InputError{"--gpus", fmt::format("expected {}, found '{}'", form, found)};
}

std::int64_t count_in(std::string_view text, std::string_view whole) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1 || count > most_gpus) {
    refuse_counts(whole);
  }
  return count;
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The scenario that every point varies.
struct Base {
  Scenario scenario;
  models::Question question;
  std::int64_t replica;  // GPUs of one data-parallel replica

  std::int64_t per_node() const { return question.cluster.node.gpus; }
};

void predict_point(const Base& base, Scaling scaling, ScalingPoint& point) {
  const models::Plan& plan = base.question.plan;
  point.data = point.gpus / base.replica;
  point.global_batch =
      scaling == Scaling::strong ? plan.batch.global : plan.batch.global * point.gpus / plan.gpus();
  if (point.gpus % base.replica != 0) {
    point.refused =
        fmt::format("{} GPUs are not a multiple of a replica's {}", point.gpus, base.replica);
    return;
  }
  const std::int64_t nodes = (point.gpus + base.per_node() - 1) / base.per_node();
  try {
    const models::Question question = base.scenario
                                          .replace({{"/plan/data", point.data},
                                                    {"/plan/global_batch", point.global_batch},
                                                    {"/cluster/nodes", nodes}})
                                          .question();
    const models::Prediction found = models::predict(question);
    point.fits = found.fit != models::Fit::no;
    point.step = found.step;
    point.tokens_per_second = found.tokens_per_second;
    point.mfu = found.mfu;
    point.breakdown = found.breakdown;
    if (found.data) point.data_wait = found.data_wait();
  } catch (const InputError& error) {
    point.refused = error.what();
  }
}

void add_efficiency(std::vector<ScalingPoint>& points) {
  const auto first =
      std::ranges::find_if(points, [](const ScalingPoint& each) { return each.refused.empty(); });
  if (first == points.end()) return;
  const double reference = first->tokens_per_second_per_gpu();
  for (ScalingPoint& each : points) {
    if (each.refused.empty()) each.efficiency = each.tokens_per_second_per_gpu() / reference;
  }
}

}  // namespace

std::vector<std::int64_t> parse_gpu_counts(std::string_view text) {
  std::vector<std::int64_t> counts;
  const std::vector<std::string_view> range = parts_of(text, ':');
  if (range.size() == 1) {
    for (const std::string_view each : parts_of(text, ',')) counts.push_back(count_in(each, text));
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  } else if (range.size() == 3 && !range[2].empty()) {
    const bool times = range[2][0] == 'x';
    const std::int64_t first = count_in(range[0], text), last = count_in(range[1], text);
    const std::int64_t step = count_in(range[2].substr(times ? 1 : 0), text);
    if (first > last || (times && step < 2)) refuse_counts(text);
    for (std::int64_t at = first; at <= last && counts.size() <= most_points;
         at = times ? at * step : at + step) {
      counts.push_back(at);
    }
  } else {
    refuse_counts(text);
  }
  if (counts.size() > most_points) {
    throw InputError{"--gpus", fmt::format("'{}' is more than {} numbers", text, most_points)};
  }
  return counts;
}

Scaling scaling_named(std::string_view text) {
  const auto found = value_of(scaling_words, text);
  if (!found) {
    throw InputError{"--scaling", fmt::format("expected weak or strong, found '{}'", text)};
  }
  return *found;
}

std::string_view name(Scaling scaling) {
  return word_of(scaling_words, scaling);
}

ScalingReport scale(const ScalingRequest& request, const Progress& progress) {
  const Scenario scenario = request.scenario.load();
  const models::Question question = scenario.question();
  const models::Plan& plan = question.plan;
  const Base base{scenario, question, plan.gpus() / plan.data};
  ScalingReport report;
  report.scenario = scenario.name();
  report.cluster = fmt::format("{}, {}", question.cluster.node.name, question.cluster.fabric.name);
  report.scaling = request.scaling;
  report.points.resize(request.gpus.size());
  std::vector<char> done(request.gpus.size(), 0);
  const Workers workers{.threads = request.threads, .progress = progress};
  report.stopped = !workers.work_through(request.gpus.size(), [&](std::size_t i, unsigned) {
    report.points[i].gpus = request.gpus[i];
    predict_point(base, request.scaling, report.points[i]);
    done[i] = 1;
  });
  for (std::size_t i = done.size(); i-- > 0;) {
    if (done[i] == 0) report.points.erase(report.points.begin() + static_cast<std::ptrdiff_t>(i));
  }
  add_efficiency(report.points);
  return report;
}

Json to_json(const ScalingReport& report) {
  Json points = Json::array();
  for (const ScalingPoint& each : report.points) {
    Json point{{"gpus", each.gpus}, {"data", each.data}, {"global_batch", each.global_batch}};
    const bool predicted = each.refused.empty();
    const auto number = [&](double value) { return predicted ? Json(value) : Json{}; };
    point["refused"] = predicted ? Json{} : Json(each.refused);
    point["fits"] = predicted ? Json(each.fits) : Json{};
    point["step_time_s"] = number(seconds(each.step));
    point["tokens_per_s"] = number(each.tokens_per_second);
    point["tokens_per_s_per_gpu"] = number(each.tokens_per_second_per_gpu());
    point["mfu"] = number(each.mfu);
    point["efficiency"] = number(each.efficiency);
    Json breakdown = Json::object();
    for (int i = 0; i < models::time_class_count; ++i) {
      const auto part = static_cast<models::TimeClass>(i);
      breakdown[std::string{models::name(part)}] =
          number(seconds(each.breakdown[static_cast<std::size_t>(i)]));
    }
    if (each.data_wait) breakdown["data"] = seconds(*each.data_wait);
    point["breakdown"] = std::move(breakdown);
    points.push_back(std::move(point));
  }
  return {{"scenario", report.scenario},
          {"cluster", report.cluster},
          {"scaling", name(report.scaling)},
          {"complete", !report.stopped},
          {"points", std::move(points)}};
}

std::string text_of(const ScalingReport& report, bool colour) {
  const char* rule = report.scaling == Scaling::weak
                         ? "sequences per GPU stay constant (weak scaling)"
                         : "the global batch stays constant (strong scaling)";
  std::string text = toned(fmt::format("{} on more GPUs", report.scenario), Tone::bold, colour) +
                     fmt::format("\n{} · {}\n\n", report.cluster, rule);
  TextTable table{
      {"GPUs", "data", "batch", "step", "tokens/s", "per GPU", "MFU", "efficiency", "<"}};
  for (const ScalingPoint& each : report.points) {
    if (!each.refused.empty()) {
      table.add({fmt::format("{}", each.gpus), "", "", "", "", "", "", "", each.refused});
      continue;
    }
    table.add({fmt::format("{}", each.gpus), fmt::format("{}", each.data),
               fmt::format("{}", each.global_batch), step_part(each.step, each.step),
               fmt::format("{:.0f}", each.tokens_per_second),
               fmt::format("{:.1f}", each.tokens_per_second_per_gpu()), percent(each.mfu),
               percent(each.efficiency), each.fits ? "" : "does not fit in memory"});
  }
  text += table.text(colour);
  if (report.points.size() > 1) {
    text +=
        "\nEvery GPU and link is as fast as every other: jitter, stragglers and failures, which "
        "grow "
        "with a\ncluster, are left out (orrery train counts them)\n";
  }
  return text + (report.stopped ? "\nStopped before the other numbers of GPUs.\n" : "");
}

}  // namespace orrery::scenarios
