#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::models {

TEST_CASE("An estimate has the numbers of the prediction") {
  for (const char* plan :
       {"tensor=1,pipeline=1,zero=1,global_batch=32,seq_len=512",
        "tensor=4,pipeline=4,sequence=true,recompute=full,global_batch=16,seq_len=512",
        "tensor=2,pipeline=4,virtual_stages=3,recompute=selective,global_batch=32,seq_len=512"}) {
    INFO(plan);
    const Question asked = question("gpt2", "dgx-a100-80gb x 2", plan);
    const Estimate estimated = estimate(asked);
    const Prediction predicted = predict(asked);
    CHECK(estimated.step == predicted.step);
    CHECK(estimated.memory == predicted.memory[predicted.fullest].total);
    CHECK(estimated.tokens_per_second == predicted.tokens_per_second);
    CHECK(estimated.mfu == predicted.mfu);
    CHECK(estimated.energy == predicted.energy);
    REQUIRE(estimated.cost);
    CHECK(*estimated.cost == *predicted.cost);
    CHECK(!estimated.out_of_memory);
  }
}

TEST_CASE("An estimate of a plan that does not fit has its memory and no time") {
  const Question asked =
      question("gpt3-175b", "dgx-a100-80gb", "tensor=8,micro_batch=1,global_batch=8");
  const Estimate estimated = estimate(asked);
  const Prediction predicted = predict(asked);
  REQUIRE(estimated.out_of_memory);
  CHECK(estimated.out_of_memory->rank == predicted.out_of_memory->rank);
  CHECK(estimated.out_of_memory->needed == predicted.out_of_memory->needed);
  CHECK(estimated.out_of_memory->available == predicted.out_of_memory->available);
  CHECK(estimated.memory == predicted.memory[predicted.fullest].total);
  CHECK(estimated.step == Time{});
}

TEST_CASE("An estimate refuses what a prediction refuses") {
  Question asked = question("gpt2", "dgx-a100-80gb", "data=8");
  asked.plan.tensor = 2;
  CHECK_THROWS_WITH(estimate(asked),
                    "/plan/data: tensor 2 x pipeline 1 x data 8 is 16 GPUs, the cluster has 8");
}

}  // namespace orrery::models
