#include "executor/checkpoint/interval.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "sim/errors.hpp"

namespace orrery::executor {

using namespace std::chrono_literals;

TEST_CASE("A checkpoint is due after ten minutes, or later where it would cost over 2 %") {
  const CheckpointInterval::Time begin{};
  CheckpointInterval interval{{}, begin};
  CHECK_FALSE(interval.due(1000, begin + 599s));
  CHECK(interval.due(1000, begin + 600s));
  // 6 s of saving in ten minutes are 1 %; 30 s are 2 % of 25 minutes.
  interval.saved(begin + 600s, begin + 606s);
  CHECK_FALSE(interval.due(2000, begin + 1205s));
  CHECK(interval.due(2000, begin + 1206s));
  interval.saved(begin + 1206s, begin + 1236s);
  CHECK_FALSE(interval.due(3000, begin + 1236s + 1499s));
  CHECK(interval.due(3000, begin + 1236s + 1500s));
}

TEST_CASE("A checkpoint is due as often as was asked for") {
  const CheckpointInterval::Time begin{};
  const CheckpointInterval by_steps{parse_checkpoint_every("3"), begin};
  CHECK_FALSE(by_steps.due(2, begin + 24h));
  CHECK(by_steps.due(6, begin));
  const CheckpointInterval never{parse_checkpoint_every("0"), begin};
  CHECK_FALSE(never.due(1, begin + 24h));
  CheckpointInterval by_time{parse_checkpoint_every("2 min"), begin};
  CHECK_FALSE(by_time.due(1, begin + 119s));
  CHECK(by_time.due(1, begin + 120s));
  by_time.saved(begin + 120s, begin + 180s);  // whatever it costs
  CHECK(by_time.due(2, begin + 300s));
  for (const char* const wrong : {"-1", "often", "", "10 GB", "1.5"}) {
    CHECK_THROWS_WITH(
        parse_checkpoint_every(wrong),
        std::string{"--checkpoint-every: expected a number of steps or a time such as "
                    "\"10 min\", found '"} +
            wrong + "'");
  }
}

}  // namespace orrery::executor
