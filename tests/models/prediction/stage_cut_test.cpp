#include "models/prediction/stage_cut.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <numeric>
#include <random>

#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

using Layers = std::vector<std::int64_t>;

Time longest(const std::vector<Time>& layers, const Layers& cut, Time first, Time last) {
  Time most{};
  std::size_t at = 0;
  for (std::size_t part = 0; part < cut.size(); ++part) {
    Time sum = part == 0 ? first : Time{};
    if (part + 1 == cut.size()) sum = sum + last;
    for (std::int64_t i = 0; i < cut[part]; ++i) sum = sum + layers[at++];
    most = std::max(most, sum);
  }
  return most;
}

/// Of every way to cut.
Time best_of_all(const std::vector<Time>& layers, std::int64_t parts, Time first, Time last) {
  Time best{std::int64_t{1} << 60};
  Layers cut;
  const std::function<void(std::int64_t)> choose = [&](std::int64_t left) {
    const auto more = parts - static_cast<std::int64_t>(cut.size());
    if (more == 1) {
      cut.push_back(left);
      best = std::min(best, longest(layers, cut, first, last));
      cut.pop_back();
      return;
    }
    for (std::int64_t own = 1; own <= left - (more - 1); ++own) {
      cut.push_back(own);
      choose(left - own);
      cut.pop_back();
    }
  };
  choose(static_cast<std::int64_t>(layers.size()));
  return best;
}

}  // namespace

TEST_CASE("A head as long as two layers takes the place of two") {
  // 10 layers of 1, embedding 0, head 2 on 4 stages: 12 in all, 3 each.
  const std::vector<Time> layers(10, Time{1'000'000});
  CHECK(cut_by_time(layers, 4, Time{}, Time{2'000'000}) == Layers{3, 3, 3, 1});
}

TEST_CASE("No way to cut has a shorter longest stage") {
  std::mt19937 random{7};
  for (int i = 0; i < 60; ++i) {
    std::vector<Time> layers(3 + random() % 7);
    for (Time& each : layers) each = Time{static_cast<std::int64_t>(1 + random() % 9) * 1'000'000};
    const Time first{static_cast<std::int64_t>(random() % 5) * 1'000'000};
    const Time last{static_cast<std::int64_t>(random() % 12) * 1'000'000};
    const auto parts = static_cast<std::int64_t>(1 + random() % layers.size());
    const Layers cut = cut_by_time(layers, parts, first, last);
    CAPTURE(i, parts);
    CHECK(std::accumulate(cut.begin(), cut.end(), std::int64_t{0}) ==
          static_cast<std::int64_t>(layers.size()));
    CHECK(longest(layers, cut, first, last) == best_of_all(layers, parts, first, last));
  }
}

TEST_CASE("A model with a large vocabulary is faster cut by time, and says how it was cut") {
  const std::string plan = "pipeline=8,micro_batch=1,global_batch=32,seq_len=4096,stage_layers=";
  const Prediction even =
      predict(question("llama3.1-8b", "dgx-h100", plan + "4:4:4:4:4:4:4:4", "megatron-lm"));
  const Prediction timed = predict(question("llama3.1-8b", "dgx-h100", plan + "by-time"));
  CHECK(timed.step < even.step);
  CHECK(timed.program->chunks.back().layers < 4);
  CHECK(std::any_of(timed.assumptions.begin(), timed.assumptions.end(), [](const std::string& a) {
    return a.rfind("/plan/stage_layers: ", 0) == 0 && a.find("by time") != std::string::npos;
  }));
}

}  // namespace orrery::models
