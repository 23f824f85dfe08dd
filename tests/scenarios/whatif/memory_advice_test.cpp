#include "scenarios/report/memory_advice.hpp"

#include <catch2/catch.hpp>

#include "scenarios/scenario/scenario.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

models::Question asked(const char* model, const char* cluster, const char* plan) {
  return Scenario::load(std::nullopt, {.model = model, .cluster = cluster, .plan = plan})
      .question();
}

}  // namespace

TEST_CASE("Each plan of the advice fits, and needs what is said") {
  for (const char* plan : {"zero=1,global_batch=64,seq_len=8192",
                           "tensor=2,global_batch=64,seq_len=8192,micro_batch=4"}) {
    INFO(plan);
    const models::Question question = asked("llama3-8b", "dgx-h100 x 1", plan);
    const models::Prediction found = models::predict(question);
    REQUIRE(found.out_of_memory);
    const MemoryAdvice advice = memory_advice(question, found.fit);
    REQUIRE_FALSE(advice.fitting.empty());
    CHECK_FALSE(advice.least);
    for (const FittingPlan& each : advice.fitting) {
      INFO(text_of(each.changes));
      const auto changed = with_fields(question, each.changes);
      REQUIRE(changed);
      const models::Prediction then = models::predict(*changed);
      CHECK_FALSE(then.out_of_memory);
      CHECK(then.memory[then.fullest].total == each.memory);
      CHECK(then.step == each.step);
    }
    CHECK(std::ranges::is_sorted(advice.fitting, {}, &FittingPlan::step));
  }
}

TEST_CASE("A model far too large for its GPUs gets the least that any change needs") {
  const models::Question question =
      asked("llama3.1-405b", "dgx-h100 x 1", "micro_batch=1,global_batch=8,seq_len=8192");
  const models::Prediction found = models::predict(question);
  REQUIRE(found.fit == models::Fit::no);
  const MemoryAdvice advice = memory_advice(question, found.fit);
  CHECK(advice.fitting.empty());
  REQUIRE(advice.least);
  CHECK(advice.least->memory < found.memory[found.fullest].total);
  CHECK(advice.least->memory > question.cluster.gpu().memory);
}

TEST_CASE("Advice states the batch where a default one would follow the degrees") {
  const char* cluster = "dgx-h100 x 1";
  const models::Question question = asked("llama3-70b", cluster, "tensor=1");
  const MemoryAdvice advice = memory_advice(question, models::predict(question).fit);
  REQUIRE_FALSE(advice.fitting.empty());
  const std::string flags = "tensor=1," + text_of(advice.fitting[0].changes);
  CHECK(flags.find("global_batch=8") != std::string::npos);
  Json plan = {{"tensor", 1}};
  for (const auto& [key, value] : advice.fitting[0].changes) plan[key] = value;
  CHECK(models::predict(asked("llama3-70b", cluster, plan.dump().c_str())).step ==
        advice.fitting[0].step);
}

TEST_CASE("A plan that fits gets no advice") {
  const models::Question question =
      asked("llama3-8b", "dgx-h100 x 1", "tensor=8,zero=1,global_batch=64,seq_len=8192");
  const models::Prediction found = models::predict(question);
  REQUIRE(found.fit == models::Fit::yes);
  CHECK(memory_advice(question, found.fit).empty());
  CHECK(to_json(memory_advice(question, found.fit)).empty());
}

TEST_CASE("The report of a plan that does not fit says what would") {
  const Ran ran = orrery(
      "simulate --model llama3-8b --cluster 'dgx-h100 x 1' --plan "
      "zero=1,global_batch=64,seq_len=8192");
  CHECK(ran.out.find("Would fit: zero=2 (") != std::string::npos);
}

}  // namespace orrery::scenarios
