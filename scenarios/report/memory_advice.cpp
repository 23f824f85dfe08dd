#include "scenarios/report/memory_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/plan/fields.hpp"
#include "scenarios/report/sections.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using models::Plan;
using models::Question;

constexpr std::size_t most_shown = 3;

/// A field, and the values of it that need less memory than the plan's own, least effort first.
struct MemorySaver {
  const char* key;
  std::vector<Json> (*values)(const Question& question);
};

/// Twice the degree, four times, ... up to the most.
std::vector<Json> doublings(std::int64_t degree, std::int64_t most) {
  std::vector<Json> values;
  for (std::int64_t value = degree * 2; value <= most; value *= 2) values.emplace_back(value);
  return values;
}

std::vector<Json> if_off(bool on) {
  return on ? std::vector<Json>{} : std::vector<Json>{true};
}

std::vector<Json> smaller_micro_batches(const Question& question) {
  std::vector<Json> values;
  for (std::int64_t size = question.plan.batch.micro / 2; size >= 1; size /= 2) {
    values.emplace_back(size);
  }
  return values;
}

std::vector<Json> higher_stages(const Question& question) {
  std::vector<Json> values;
  if (question.plan.replicas() == 1) return values;
  for (const models::Zero stage : question.software.runs.zero) {
    const auto number = static_cast<std::int64_t>(stage);
    if (number > static_cast<std::int64_t>(question.plan.sharding.zero))
      values.emplace_back(number);
  }
  return values;
}

std::vector<Json> more_recomputation(const Question& question) {
  switch (question.plan.recompute.kind) {
    case models::Recompute::none:
      return {"selective", "full"};
    case models::Recompute::selective:
      return {"full"};
    case models::Recompute::full:
      break;
  }
  return {};
}

constexpr std::array savers{
    MemorySaver{"micro_batch", smaller_micro_batches},
    MemorySaver{"sequence",
                [](const Question& q) {
                  return q.plan.tensor == 1 ? std::vector<Json>{}
                                            : if_off(q.plan.sequence_parallel);
                }},
    MemorySaver{"zero", higher_stages},
    MemorySaver{"recompute", more_recomputation},
    MemorySaver{"fused_cross_entropy",
                [](const Question& q) { return if_off(q.plan.kernels.fused_cross_entropy); }},
    MemorySaver{"tensor",
                [](const Question& q) { return doublings(q.plan.tensor, q.cluster.node.gpus); }},
    MemorySaver{
        "pipeline",
        [](const Question& q) { return doublings(q.plan.pipeline, q.model.layers.size()); }},
    MemorySaver{"expert",
                [](const Question& q) {
                  return doublings(q.plan.experts.ranks, usual_experts(q.model).count);
                }},
    MemorySaver{"offload",
                [](const Question& q) {
                  return q.plan.offload.state == models::Offload::none
                             ? std::vector<Json>{"optimizer"}
                             : std::vector<Json>{};
                }},
};

/// Evaluates plans with the same question.
class PlanTrial {
 public:
  explicit PlanTrial(const Question& question) : question_{question} {
    question_.network = {};
    question_.network.mode = models::NetworkMode::fixed;
    assumes_batch_ = std::ranges::any_of(question.assumptions, [](const std::string& each) {
      return each.rfind("/plan/global_batch:", 0) == 0;
    });
  }

  const Question& question() const { return question_; }

  /// Whether the changed plan fits; it is kept if so.
  bool fits(const PlanChanges& changes) {
    const auto changed = with_fields(question_, changes);
    if (!changed) return false;
    const models::Estimate found = models::estimate(*changed);
    PlanChanges stated = changes;
    // A default batch follows the degrees: stated, the flags of the advice give what is said.
    if (assumes_batch_) stated.emplace_back("global_batch", question_.plan.batch.global);
    if (found.out_of_memory) {
      const bool of_gpu = found.out_of_memory->place == models::MemoryPlace::gpu;
      if (!of_gpu) return false;
      if (!advice_.least || found.memory < advice_.least->memory) {
        advice_.least = FittingPlan{std::move(stated), found.memory};
      }
      return false;
    }
    advice_.fitting.push_back({std::move(stated), found.memory, found.step});
    return true;
  }

  MemoryAdvice advice() {
    std::ranges::stable_sort(advice_.fitting, {}, &FittingPlan::step);
    if (advice_.fitting.size() > most_shown) advice_.fitting.resize(most_shown);
    if (!advice_.fitting.empty()) advice_.least.reset();
    return std::move(advice_);
  }
  bool found_any() const { return !advice_.fitting.empty(); }

 private:
  Question question_;
  bool assumes_batch_ = false;
  MemoryAdvice advice_;
};

/// The value of each saver that goes furthest.
PlanChanges furthest(const Question& question) {
  PlanChanges changes;
  for (const MemorySaver& saver : savers) {
    const std::vector<Json> values = saver.values(question);
    if (values.empty()) continue;
    PlanChanges more = changes;
    more.emplace_back(saver.key, values.back());
    if (with_fields(question, more)) changes = std::move(more);
  }
  return changes;
}

void try_single_changes(PlanTrial& trial) {
  for (const MemorySaver& saver : savers) {
    for (const Json& value : saver.values(trial.question())) {
      if (trial.fits({{saver.key, value}})) break;  // more of it is not needed
    }
  }
}

void try_pairs(PlanTrial& trial) {
  for (std::size_t i = 0; i < savers.size(); ++i) {
    const std::vector<Json> first = savers[i].values(trial.question());
    for (std::size_t j = i + 1; !first.empty() && j < savers.size(); ++j) {
      for (const Json& second : savers[j].values(trial.question())) {
        if (trial.fits({{savers[i].key, first.back()}, {savers[j].key, second}})) break;
      }
    }
  }
}

}  // namespace

MemoryAdvice memory_advice(const models::Question& question, models::Fit fit) {
  if (fit != models::Fit::no && fit != models::Fit::doubtful) return {};
  PlanTrial trial{question};
  try_single_changes(trial);
  if (!trial.found_any()) try_pairs(trial);
  if (!trial.found_any()) trial.fits(furthest(trial.question()));
  return trial.advice();
}

std::string text_of(const MemoryAdvice& advice) {
  if (advice.least) {
    return fmt::format("No change of this plan that was tried fits; least memory: {} ({})",
                       text_of(advice.least->changes), format(advice.least->memory));
  }
  std::string text;
  for (const FittingPlan& each : advice.fitting) {
    text += fmt::format("{}{} ({}, {})", text.empty() ? "Would fit: " : "; ", text_of(each.changes),
                        format(each.memory), step_part(each.step, each.step));
  }
  return text;
}

Json to_json(const MemoryAdvice& advice) {
  Json list = Json::array();
  for (const FittingPlan& each : advice.fitting) {
    Json changes = Json::object();
    for (const auto& [key, value] : each.changes) changes[key] = value;
    list.push_back({{"changes", std::move(changes)},
                    {"peak_memory_bytes", each.memory.count()},
                    {"step_time_s", seconds(each.step)}});
  }
  return list;
}

}  // namespace orrery::scenarios
