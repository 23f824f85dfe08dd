#include "scenarios/report/open_questions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "models/schedules/schedule.hpp"
#include "scenarios/report/sections.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

using models::Accumulation;
using models::Software;

using Generation = const std::string&;

constexpr ProfileSwitch switches[] = {
    {"attention kernel",
     [](Software& s, Generation generation) {
       const bool unfused = s.attention(generation) == "unfused";
       s.kernels.attention[generation] = unfused ? "flash-2" : "unfused";
     },
     [](const Software& s, Generation generation) { return s.attention(generation) == "unfused"; }},
    {"gradients reduced during the backward pass",
     [](Software& s, Generation) {
       s.overlap.gradients = !s.overlap.gradients;
       s.overlap.sharded_gradients = s.overlap.gradients;
     },
     [](const Software& s, Generation) { return s.overlap.gradients; }},
    {"all-reduce of input gradients overlapped with the weight gradient",
     [](Software& s, Generation) { s.overlap.tensor_backward = !s.overlap.tensor_backward; },
     [](const Software& s, Generation) { return s.overlap.tensor_backward; }},
    {"weight gradients accumulated in fp32 by the GEMM itself",
     [](Software& s, Generation) {
       const bool fused = s.accumulation == Accumulation::fused;
       s.accumulation = fused ? Accumulation::separate : Accumulation::fused;
     },
     [](const Software& s, Generation) { return s.accumulation == Accumulation::fused; }},
    {"dropout", [](Software& s, Generation) { s.kernels.dropout = !s.kernels.dropout; },
     [](const Software& s, Generation) { return s.kernels.dropout; }},
};

constexpr std::size_t most_questions = 2;
constexpr double least_change = 0.005;

}  // namespace

std::span<const ProfileSwitch> profile_switches() {
  return switches;
}

/// A profile whose errors are known from runs of other stacks only. One without known errors states
/// its own stack's switches.
bool stands_in(const Software& software) {
  return software.residuals && !models::is_fitted(software);
}

std::optional<double> change_of(const ProfileSwitch& one, models::Question question, Time step) {
  one.other_way(question.software, question.cluster.gpu().generation.name);
  try {
    return ratio(models::predict(question).step, step) - 1;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::vector<OpenQuestion> open_questions(const models::Question& question, Time step) {
  std::vector<OpenQuestion> found;
  if (!stands_in(question.software)) return found;
  for (const ProfileSwitch& each : switches) {
    const auto change = change_of(each, question, step);
    if (change && std::abs(*change) >= least_change) found.push_back({each.question, *change});
  }
  const auto size = [](const OpenQuestion& each) { return std::abs(each.change); };
  std::ranges::stable_sort(found, std::greater{}, size);
  found.resize(std::min(found.size(), most_questions));
  return found;
}

namespace {

constexpr std::string_view tensor_part = "tensor-parallel communication";

/// Does a product take longer below its peak because the peak is higher?
bool is_of_products(std::string_view part) {
  constexpr std::string_view names[] = {"ideal: model FLOPs at peak", "recomputation",
                                        "FLOPs outside the model's count", "GEMMs below peak",
                                        "attention below peak"};
  return std::ranges::find(names, part) != std::end(names);
}

std::vector<models::WaterfallPart> parts_beyond(const std::vector<models::WaterfallPart>& plan,
                                                const std::vector<models::WaterfallPart>& plainer) {
  ensure(plan.size() == plainer.size(), "waterfalls have the same parts");
  std::vector<models::WaterfallPart> parts{{"products and attention", {}}};
  for (std::size_t i = 0; i < plan.size(); ++i) {
    const Time beyond = plan[i].time - plainer[i].time;
    if (is_of_products(plan[i].name)) {
      parts.front().time += beyond;
    } else {
      parts.push_back({plan[i].name, beyond});
    }
  }
  const auto size = [](const models::WaterfallPart& part) { return std::abs(part.time.count()); };
  const std::int64_t largest = size(*std::ranges::max_element(parts, {}, size));
  std::erase_if(parts, [&](const models::WaterfallPart& part) {
    return size(part) == 0 || size(part) < largest / 100;
  });
  std::ranges::stable_sort(parts, std::greater{}, &models::WaterfallPart::time);
  return parts;
}

/// The plan with the plainer choice; empty where it has that already.
using Plainer = std::string (*)(const models::Question&, models::Plan&);

std::string in_16_bits(const models::Question&, models::Plan& plan) {
  using models::Precision;
  const bool plain =
      plan.formats.precision == Precision::bf16 || plan.formats.precision == Precision::fp16 ||
      plan.formats.precision == Precision::tf32 || plan.formats.precision == Precision::fp32 ||
      plan.formats.precision == Precision::fp64;
  if (plain) return {};
  const models::FormatChoices own = plan.formats;
  plan.formats = {};
  plan.formats.state = own.state;
  plan.formats.gradient = own.gradient;
  plan.formats.kbit_upcast = own.kbit_upcast;
  return "precision=bf16";
}

std::string with_whole_backward(const models::Question& question, models::Plan& plan) {
  models::StageChoices& stages = plan.stages;
  if (!question.schedules->has(stages.schedule)) return {};
  const models::Schedule& own = question.schedules->at(stages.schedule);
  if (!own.splits_backward()) return {};
  if (own.copies() > 1) stages.virtual_stages = 1;
  stages.schedule = stages.virtual_stages > 1 ? "interleaved-1f1b" : "1f1b";
  return "schedule=" + stages.schedule;
}

/// Why a backward in two parts communicates longer.
std::string reason_of(const models::Question& question, const PlainerChoice& plainer) {
  const bool split = plainer.choice.starts_with("schedule=");
  const bool longest = !plainer.parts.empty() && plainer.parts.front().name == tensor_part;
  if (!split || !longest || !question.software.overlap.tensor_backward) return {};
  return "a backward cut in two has no weight gradient beside the collective of its input gradient";
}

}  // namespace

std::vector<PlainerChoice> plainer_choices(const models::Question& question,
                                           const models::Prediction& prediction) {
  std::vector<PlainerChoice> found;
  for (const Plainer each : {in_16_bits, with_whole_backward}) {
    models::Question other = question;
    PlainerChoice plainer{
        .choice = each(question, other.plan), .step = {}, .parts = {}, .reason = {}};
    if (plainer.choice.empty()) continue;
    try {
      const models::Prediction plain = models::predict(other);
      const bool lost = plain.fit == models::Fit::no && prediction.fit != models::Fit::no;
      if (lost || plain.step > prediction.step) continue;
      plainer.step = plain.step;
      plainer.parts = parts_beyond(prediction.waterfall, plain.waterfall);
    } catch (const InputError&) {
      continue;  // the plan needs its own choice
    }
    plainer.reason = reason_of(question, plainer);
    found.push_back(std::move(plainer));
  }
  return found;
}

std::string words_of(const PlainerChoice& plainer) {
  std::string parts;
  for (const models::WaterfallPart& each : plainer.parts) {
    parts += fmt::format("{}{}{} {}", parts.empty() ? ": " : ", ", each.time > Time{} ? "+" : "-",
                         step_part(Time{std::abs(each.time.count())}, plainer.step), each.name);
  }
  return fmt::format("not faster than {}, which takes {}{}{}{}", plainer.choice,
                     step_part(plainer.step, plainer.step), parts,
                     plainer.reason.empty() ? "" : "; ", plainer.reason);
}

}  // namespace orrery::scenarios
