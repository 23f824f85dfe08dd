// What an unknown stack should be asked.

#include "scenarios/report/open_questions.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/models/questions.hpp"

namespace orrery::scenarios {
namespace {

models::Question long_sequences(const std::string& software) {
  return models::question("llama3-8b", "dgx-a100-80gb",
                          "data=8,global_batch=8,micro_batch=1,seq_len=8192", software);
}

TEST_CASE("An unknown stack is asked the two switches that move its step most") {
  const models::Question question = long_sequences("generic");
  const Time step = models::predict(question).step;
  const std::vector<OpenQuestion> found = open_questions(question, step);
  REQUIRE(found.size() == 2);
  CHECK(std::abs(found[0].change) >= std::abs(found[1].change));
  // Scores of 8192 x 8192 in memory cost more than any overlap.
  CHECK(found[0].question == "attention kernel");
  CHECK(found[0].change > 0);
}

TEST_CASE("A stack with runs of its own is not asked") {
  const models::Question question = long_sequences("megatron-lm");
  CHECK(open_questions(question, models::predict(question).step).empty());
}

TEST_CASE("A profile that states no residuals is not fitted, and states its own switches") {
  models::Question question = long_sequences("megatron-lm");
  CHECK(models::is_fitted(question.software));
  question.software.residuals.reset();
  CHECK_FALSE(models::is_fitted(question.software));
  CHECK(open_questions(question, models::predict(question).step).empty());
}

TEST_CASE("A switch that the plan cannot have the other way is no question") {
  // Context parallelism needs a fused attention kernel.
  const models::Question question = models::question(
      "llama3-8b", "dgx-h100 x 1", "context=2,global_batch=8,seq_len=8192", "generic");
  for (const OpenQuestion& each : open_questions(question, models::predict(question).step)) {
    CHECK(each.question != "attention kernel");
  }
}

TEST_CASE("Of an fp8 step that is no faster the report says what bf16 takes, and why") {
  const auto asked = [](const std::string& precision) {
    return models::question("qwen3-30b-a3b", "dgx-h100 x 1",
                            "expert=8,zero=1,global_batch=32,seq_len=4096,recompute=full,"
                            "precision=" +
                                precision,
                            "generic");
  };
  const models::Prediction plain = models::predict(asked("bf16"));
  const models::Question question = asked("fp8");
  const models::Prediction prediction = models::predict(question);
  REQUIRE(prediction.step > plain.step);
  const std::vector<PlainerChoice> found = plainer_choices(question, prediction);
  REQUIRE(found.size() == 1);
  CHECK(found[0].choice == "precision=bf16");
  CHECK(found[0].step == plain.step);
  CHECK(found[0].parts.front().name == "memory-bound kernels");
  CHECK(found[0].parts.back().name == "products and attention");
  CHECK(found[0].parts.back().time < Time{});
  CHECK(words_of(found[0]).starts_with("not faster than precision=bf16, which takes 2."));
  CHECK(plainer_choices(asked("bf16"), plain).empty());
}

TEST_CASE("A split backward that is slower than a whole one says what it no longer hides") {
  const auto asked = [](const std::string& schedule) {
    return models::question("llama3-70b", "dgx-h100 x 8",
                            "tensor=8,sequence=true,pipeline=4,zero=1,global_batch=64,"
                            "seq_len=4096,schedule=" +
                                schedule,
                            "generic");
  };
  const models::Question question = asked("zb-h1");
  const models::Prediction prediction = models::predict(question);
  const std::vector<PlainerChoice> found = plainer_choices(question, prediction);
  REQUIRE(found.size() == 1);
  CHECK(found[0].choice == "schedule=1f1b");
  CHECK(found[0].step == models::predict(asked("1f1b")).step);
  CHECK(found[0].parts.front().name == "tensor-parallel communication");
  CHECK(found[0].parts.back().name == "pipeline bubble");
  CHECK(found[0].reason ==
        "a backward cut in two has no weight gradient beside the collective of its input "
        "gradient");
}

TEST_CASE("A kernel that the processor does not have is no question") {
  const models::Question question = models::question(
      "gpt2", "cpu-host", "micro_batch=1,global_batch=8,seq_len=256,data=8", "generic");
  for (const OpenQuestion& each : open_questions(question, models::predict(question).step)) {
    CHECK(each.question != "attention kernel");
  }
}

}  // namespace
}  // namespace orrery::scenarios
