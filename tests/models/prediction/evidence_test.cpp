#include "models/prediction/error/evidence.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/prediction/error/published_errors.hpp"
#include "models/prediction/prediction.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

RunTraits traits(RunKind kind, const std::string& stack, const std::string& gpu, int year = 0) {
  return {.kinds = {kind}, .stack = stack, .gpu = gpu, .year = year};
}

/// Ten groups of every kind behind a spread of 0.1 between and 0 within; LoRA runs of "nemo" on
/// h100 in 2024, dense and expert runs of it on both GPUs.
RangeRecord record() {
  RangeRecord found;
  for (const auto& [kind, word] : run_kind_words) {
    found.kinds[kind] = {
        .rows = 20, .groups = 10, .between = 0.1, .within = 0, .groups_behind = 10};
  }
  found.steps = {0.4, 0.2, 0.05, 0.1, 0.03};
  found.unseen_low = 0.5;
  found.unseen_high = 1.5;
  found.groups = {{traits(RunKind::adapters, "nemo", "h100", 2024), "a", 12, 3},
                  {traits(RunKind::adapters, "torchtune", "a100", 2024), "b", 1, 1},
                  {traits(RunKind::dense, "nemo", "a100", 2024), "c", 7, 2},
                  {traits(RunKind::experts, "nemo", "h100", 2024), "d", 4, 1}};
  return found;
}

/// t(10): 1 + 0.6607 / 9 + 0.4455 / 81.
constexpr double few = 1 + 0.6607 / 9 + 0.4455 / 81;

TEST_CASE("A question like published runs is as uncertain as groups of their kind") {
  const Evidence found = evidence_of(record(), traits(RunKind::adapters, "nemo", "h100", 2024));
  CHECK(found.rows == 12);
  CHECK(found.groups == 3);
  CHECK(found.steps.empty());
  CHECK(found.low == Approx(0.1 * few));
  CHECK(found.high == Approx(0.1 * few));
  CHECK(words_of(found) == "12 runs of LoRA in 3 groups with nemo on h100");
}

TEST_CASE("Each step from published runs to the question adds its spread") {
  // sqrt(0.1079^2 + 0.2^2) is 2.1 times 0.1079.
  const Evidence gpu = evidence_of(record(), traits(RunKind::adapters, "nemo", "a100", 2024));
  CHECK(gpu.high == Approx(std::hypot(0.1 * few, 0.2)));
  CHECK(words_of(gpu) ==
        "12 runs of LoRA in 3 groups with nemo; none on this GPU with this stack (x 2.1)");
  const Evidence era = evidence_of(record(), traits(RunKind::adapters, "nemo", "a100", 2026));
  CHECK(era.high == Approx(std::hypot(0.1 * few, 0.2, 0.05)));
  RunTraits assumed = traits(RunKind::adapters, "nemo", "h100", 2024);
  assumed.assumes_attention = assumed.assumes_plan = true;
  CHECK(evidence_of(record(), assumed).high == Approx(std::hypot(0.1 * few, 0.1, 0.03)));
}

TEST_CASE("A stack without such runs is slower than predicted, seldom faster") {
  const Evidence found = evidence_of(record(), traits(RunKind::adapters, "axolotl", "a100", 2024));
  CHECK(found.stack.empty());
  CHECK(found.rows == 1);  // of another stack on this GPU
  CHECK(found.low == Approx(std::hypot(0.1 * few, 0.4) * 0.5));
  CHECK(found.high == Approx(std::hypot(0.1 * few, 0.4) * 1.5));
  CHECK(words_of(found) == "1 run of LoRA in 1 group on a100; none with this stack (x 3.8)");
}

TEST_CASE("A question of two kinds has the errors of both, unless the stack has runs of both") {
  RunTraits both = traits(RunKind::adapters, "nemo", "h100", 2024);
  both.kinds.push_back(RunKind::experts);
  RangeRecord known = record();
  CHECK(evidence_of(known, both).high == Approx(0.1 * few * std::sqrt(2.0)));
  known.groups.push_back({both, "e", 2, 1});
  CHECK(evidence_of(known, both).high == Approx(0.1 * few));
}

TEST_CASE("A kind with few groups is more uncertain than one with many of the same spread") {
  RangeRecord scarce = record();
  scarce.kinds[RunKind::adapters].groups_behind = 3;
  const RunTraits asked = traits(RunKind::adapters, "nemo", "h100", 2024);
  CHECK(evidence_of(scarce, asked).high > evidence_of(record(), asked).high);
}

Question evidence_question(const std::string& plan, const std::string& software = "nemo") {
  return question("llama2-7b", "dgx-h100", plan, software);
}

TEST_CASE("The kind of a question is its task, then its model's and its plan's") {
  const std::string usual = "micro_batch=1,global_batch=8,seq_len=2048";
  const auto kinds = [&](const std::string& plan) {
    return traits_of(evidence_question(plan)).kinds;
  };
  CHECK(kinds(usual) == std::vector{RunKind::dense});
  CHECK(kinds(usual + ",zero=3") == std::vector{RunKind::sharded});
  CHECK(kinds(usual + ",task=sft") == std::vector{RunKind::tuning});
  CHECK(kinds(usual + ",task=lora,zero=3") == std::vector{RunKind::adapters, RunKind::sharded});
}

TEST_CASE("A profile that its user fitted keeps its own residuals, wider on another GPU") {
  Question own = evidence_question("micro_batch=1,global_batch=8,seq_len=2048");
  own.software.name = "our-stack";
  own.software.residuals = Residuals{.p10 = -0.06, .p90 = 0.08, .rows = 30, .source = "test"};
  const Evidence found = evidence_for(own);
  CHECK(found.rows == 30);
  CHECK(found.low == 0.06);
  CHECK(found.high == 0.08);
  own.software.residuals->places = {{"site", "a100-sxm-80gb", "infiniband"}};
  const double gpu = published_errors().ranges.spread(RangeStep::gpu);
  CHECK(evidence_for(own).high == Approx(std::hypot(0.08, gpu)));
  own.plan.task = Task::lora;  // it was not fitted to such runs
  CHECK(evidence_for(own).steps.front() == RangeStep::stack);
}

TEST_CASE("A stack that nobody has fitted is more uncertain than one with runs") {
  const std::string plan = "micro_batch=1,global_batch=8,seq_len=2048";
  CHECK(evidence_for(evidence_question(plan, "generic")).high >
        evidence_for(evidence_question(plan, "nemo")).high);
}

}  // namespace
}  // namespace orrery::models
