#include <fmt/format.h>

#include <algorithm>

#include "models/model/counts.hpp"
#include "models/model/operation_list.hpp"
#include "models/network/collectives/collective.hpp"
#include "models/plan/fields.hpp"
#include "models/prediction/memory_report.hpp"
#include "models/prediction/power.hpp"
#include "scenarios/report/memory_advice.hpp"
#include "scenarios/report/open_questions.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/scenario/price_words.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

std::string heading(std::string_view title, const ReportOptions& options) {
  return "\n" + toned(title, Tone::bold, options.colour) + "\n";
}

std::string step_part(Time time, Time step) {
  const double value = seconds(time);
  if (seconds(step) >= 10) return fmt::format("{:.2f} s", value);
  if (seconds(step) >= 1) return fmt::format("{:.3f} s", value);
  return fmt::format("{:.2f} ms", value * 1e3);
}

std::string percent(double share) {
  return fmt::format("{:.1f} %", share * 100);
}

namespace {

/// "1,234,567": with thousands separators.
std::string grouped(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

std::string count_of(double value) {
  if (value >= 1e12) return fmt::format("{:.4g}T", value / 1e12);
  if (value >= 1e9) return fmt::format("{:.4g}B", value / 1e9);
  return fmt::format("{:.4g}M", value / 1e6);
}

std::string dollars(double value) {
  if (value < 1000) return fmt::format("${:.2f}", value);
  return "$" + grouped(value);
}

std::string listed_in_words(const Json& value) {
  if (!value.is_array()) return value.is_string() ? value.get<std::string>() : value.dump();
  std::string text;
  for (const Json& each : value) text += (text.empty() ? "" : ", ") + listed_in_words(each);
  return text;
}

/// " · adapters' rank 16 · moments int8": plan fields that are rarely set.
std::string further_choices(const models::Plan& plan) {
  std::string text;
  for (const models::PlanField& field : models::plan_fields()) {
    if (field.summary != models::PlanField::Summary::stated) continue;
    const Json value = field.json(plan);
    if (value.is_null()) continue;
    text += fmt::format(" · {}", field.name);
    if (value != Json(true)) text += " " + listed_in_words(value);
  }
  return text;
}

/// "682.6B parameters (671B without MTP)"
std::string parameters_of(const models::Model& model) {
  const std::int64_t ahead = models::count_prediction_parameters(model);
  const auto rounded = [](std::int64_t count) { return count_of(static_cast<double>(count)); };
  const std::string all = rounded(model.parameters) + " parameters";
  return ahead > 0 ? fmt::format("{} ({} without MTP)", all, rounded(model.parameters - ahead))
                   : all;
}

std::string title(const ReportInputs& in) {
  const models::Question& asked = in.question;
  const models::Plan& plan = asked.plan;
  std::string text = toned(fmt::format("{} on {}", asked.model.name, asked.cluster.name),
                           Tone::bold, in.options.colour);
  text += fmt::format("\n{} · {} x {} · {}\n", parameters_of(asked.model), plan.gpus(),
                      asked.cluster.gpu().name, asked.software.name);
  if (asked.model.list) {
    text += fmt::format("{} · {} · {}{}\n", models::degrees_of(plan),
                        asked.model.list->trains()
                            ? fmt::format("{} micro-batch{} of {} samples", plan.micro_batches(),
                                          plan.micro_batches() == 1 ? "" : "es", plan.batch.micro)
                            : "a loop of steps",
                        models::name(plan.formats.precision), further_choices(plan));
    return text;
  }
  text += fmt::format("{} · {} micro-batch{} of {} x {} tokens · {} · recompute {}{}\n",
                      models::degrees_of(plan), plan.micro_batches(),
                      plan.micro_batches() == 1 ? "" : "es", plan.batch.micro, plan.batch.seq_len,
                      models::name(plan.formats.precision), models::name(plan.recompute.kind),
                      further_choices(plan));
  return text;
}

/// One line of the summary.
std::string line(std::string_view label, std::string_view value, std::string_view rest = "") {
  return fmt::format("  {:<14}{:<18}  {}\n", label, value, rest);
}

/// Lines under a value, as wide as the terminal.
std::string faint_lines(const ReportInputs& in, const std::string& words) {
  std::string text;
  for (const std::string& each : wrapped(words, columns_after(16, in.options))) {
    text += fmt::format("{:16}{}\n", "", toned(each, Tone::faint, in.options.colour));
  }
  return text;
}

/// Model FLOPs per second and GPU.
FlopRate model_rate_of(const ReportInputs& in) {
  const auto gpus = static_cast<double>(in.question.plan.gpus());
  return FlopRate{in.prediction.model_flops / seconds(in.prediction.step) / gpus};
}

std::string published_line(const ReportInputs& in) {
  const auto& published = in.options.published;
  if (!published) return {};
  std::string text;
  std::string figure = "see the source";
  std::string error;
  if (published->step) {
    figure = step_part(*published->step, in.prediction.step);
    error =
        fmt::format("predicted {:+.1f} %", 100 * (ratio(in.prediction.step, *published->step) - 1));
  } else if (published->model_rate) {
    figure = format(*published->model_rate);
    error = fmt::format("per GPU, predicted {:+.1f} %",
                        100 * (model_rate_of(in).count() / published->model_rate->count() - 1));
  }
  text += line("Published", figure, error);
  return text + faint_lines(in, published->source);
}

std::string memory_lines(const ReportInputs& in) {
  const models::StageMemory& fullest = in.prediction.memory.at(in.prediction.fullest);
  const Bytes available = in.question.cluster.gpu().memory;
  const double share = ratio(fullest.total, available);
  constexpr std::size_t width = 20;
  std::string gauge = bar(0, share, width);
  gauge += std::string(width - std::min(width, shown_columns(gauge)), ' ');
  const models::Fit fit = in.prediction.fit;
  const Tone tone = fit == models::Fit::yes  ? Tone::good
                    : fit == models::Fit::no ? Tone::bad
                                             : Tone::loss;
  std::string text = line("Memory", format(fullest.total),
                          fmt::format("of {}, {}  {}", format(available), percent(share),
                                      toned("▕" + gauge + "▏", tone, in.options.colour)));
  text += line("", "", fit_words(fit, in.prediction.fit_probability, in.question.headroom));
  if (fit == models::Fit::doubtful) {
    text +=
        line("", "",
             fmt::format("at least {}, whatever the allocator keeps", format(fullest.need.least)));
  }
  const models::Evidence& peaks = in.prediction.memory_evidence;
  const models::PeakRange range = models::peak_range(fullest.total, peaks);
  text += faint_lines(in, fmt::format("{} to {} in 8 of 10 cases, from {}", format(range.p10),
                                      format(range.p90), words_of(peaks)));
  std::string kinds;
  const auto add = [&](std::string_view name, Bytes bytes) {
    if (bytes.count() == 0) return;
    kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", name, format(bytes));
  };
  for (int i = 0; i < models::buffer_kind_count; ++i) {
    add(models::name(static_cast<models::BufferKind>(i)),
        fullest.program[static_cast<std::size_t>(i)]);
  }
  add("context", fullest.context);
  add("fragmentation", fullest.fragmentation);
  const std::string whole = fmt::format("stage {}: {}", fullest.stage, kinds);
  return text + faint_lines(in, whole);
}

std::string out_of_memory_line(const ReportInputs& in) {
  if (in.prediction.fit != models::Fit::no) return {};
  const models::OutOfMemory& found = *in.prediction.out_of_memory;
  return "\n" + toned("Does not fit: " + models::words_of(found), Tone::bad, in.options.colour) +
         "\n";
}

/// What would fit, under a plan that does not or may not.
std::string advice_lines(const ReportInputs& in) {
  const std::string advice = text_of(memory_advice(in.question, in.prediction.fit));
  if (advice.empty()) return {};
  return (in.prediction.fit == models::Fit::no ? "" : "\n") + paragraph(advice, 0, in.options);
}

/// Days and dollars for a number of tokens, without failures.
std::string tokens_line(const ReportInputs& in) {
  if (!in.options.tokens) return {};
  const TrainingTotals run = totals_of(in.question, in.prediction, *in.options.tokens);
  const std::string time = run.days >= 1 ? fmt::format("{:.1f} days", run.days)
                                         : fmt::format("{:.1f} hours", run.days * 24);
  const std::string cost = run.cost ? dollars(run.cost->count()) + ", " : "";
  return line(count_of(*in.options.tokens) + " tokens", time,
              cost + "without failures or restarts") +
         (in.options.whole_run.empty() ? ""
                                       : faint_lines(in, in.options.whole_run + " (orrery train)"));
}

std::string question_lines(const ReportInputs& in) {
  std::string words;
  for (const OpenQuestion& each : open_questions(in.question, in.prediction.step)) {
    words += fmt::format("{}{} ({:+.0f} % if set the other way)", words.empty() ? "" : "; ",
                         each.question, 100 * each.change);
  }
  return words.empty() ? words : faint_lines(in, "Profile switches to confirm first: " + words);
}

std::string plainer_lines(const ReportInputs& in) {
  std::string lines;
  for (const PlainerChoice& each : plainer_choices(in.question, in.prediction)) {
    lines += faint_lines(in, words_of(each));
  }
  return lines;
}

/// The lane of the step's input: hidden, or what the step waits for it.
std::string data_lines(const ReportInputs& in) {
  if (!in.prediction.data) return {};
  const models::DataAnswer& data = *in.prediction.data;
  const bool hidden = data.wait() == Time{};
  std::string rest = hidden ? "hidden: no step waits for its data"
                            : fmt::format("of a step waiting for data: {} of the step",
                                          percent(ratio(data.wait(), in.prediction.step)));
  return line("Data", step_part(hidden ? data.longest : data.wait(), in.prediction.step),
              hidden ? rest : toned(rest, Tone::loss, in.options.colour)) +
         faint_lines(in, data_words(*in.question.data, data));
}

std::string summary(const ReportInputs& in) {
  const models::Prediction& p = in.prediction;
  const auto gpus = static_cast<double>(p.ranks);
  const double step = seconds(p.step);
  std::string text = "\n";
  text += line("Step time", step_part(p.step, p.step),
               fmt::format("slowest stage {}, {} of {} ranks simulated",
                           p.program->classes[p.slowest].stage, p.ranks_simulated, p.ranks));
  text += faint_lines(
      in, fmt::format("{} to {} in 8 of 10 cases, from {}", step_part(p.uncertainty.p10, p.step),
                      step_part(p.uncertainty.p90, p.step), words_of(p.evidence)));
  const std::string& unmeasured = in.question.cluster.gpu().unmeasured;
  if (!unmeasured.empty()) text += faint_lines(in, unmeasured);
  text += question_lines(in);
  text += plainer_lines(in);
  text += published_line(in);
  text += data_lines(in);
  const std::string_view unit = models::unit_word(in.question.model);
  const bool loops = unit == "steps";
  text +=
      line("Throughput", fmt::format("{} {}/s", grouped(p.tokens_per_second), unit),
           loops ? "" : fmt::format("{} {}/s per GPU", grouped(p.tokens_per_second / gpus), unit));
  if (!loops)
    text += line("Model FLOPs", fmt::format("{:.1f} TFLOP/s", model_rate_of(in).count() / 1e12),
                 fmt::format("per GPU, MFU {}, HFU {}", percent(p.mfu), percent(p.hfu)));
  text += memory_lines(in);
  const std::string rate =
      in.question.cluster.price_per_gpu_hour
          ? fmt::format("at {} per GPU", format(*in.question.cluster.price_per_gpu_hour))
          : std::string{};
  text += line("Cost", p.cost ? dollars(p.cost->count()) + " a step" : "no price known", rate);
  if (const auto price = hardware::price_of(in.question.cluster)) {
    text += faint_lines(in, source_words(*price));
  }
  text +=
      line("Energy", format(p.energy),
           fmt::format("a step, {} per GPU, {} including its share of the host",
                       format(models::gpu_power(in.question.cluster, p.ranks, p.energy, p.step)),
                       format(Power{p.energy.count() / step / gpus})));
  return text + tokens_line(in);
}

}  // namespace

std::string report(const models::Question& question, const models::Prediction& prediction,
                   const ReportOptions& options) {
  const ReportInputs inputs{question, prediction, options};
  std::string text =
      title(inputs) + summary(inputs) + out_of_memory_line(inputs) + advice_lines(inputs);
  text += waterfall_section(inputs) + network_section(inputs);
  if (options.explain) {
    text += busy_section(inputs) + kernels_section(inputs) + collectives_section(inputs) +
            memory_section(inputs);
  }
  return text + assumed_section(prediction.assumptions, options);
}

}  // namespace orrery::scenarios
