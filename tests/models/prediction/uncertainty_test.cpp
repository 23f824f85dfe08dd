#include "models/prediction/error/uncertainty.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/prediction/prediction.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

TEST_CASE("The interval is the evidence around the step, wider where fallback curves are used") {
  // Measured over predicted from e^-0.1 to e^0.2; with two fallback curves 1.3^2 = 1.69 times that.
  Evidence evidence;
  evidence.low = 0.1;
  evidence.high = 0.2;
  const Uncertainty own = uncertainty_of(from_seconds(10), evidence, 0);
  CHECK(seconds(own.p10) == Approx(10 * std::exp(-0.1)));
  CHECK(own.p50 == from_seconds(10));
  CHECK(seconds(own.p90) == Approx(10 * std::exp(0.2)));
  const Uncertainty fallback = uncertainty_of(from_seconds(10), evidence, 2);
  CHECK(seconds(fallback.p10) == Approx(10 * std::exp(-0.169)));
  CHECK(seconds(fallback.p90) == Approx(10 * std::exp(0.338)));
}

Time part_named(const Prediction& prediction, std::string_view part) {
  for (const WaterfallPart& each : prediction.waterfall) {
    if (each.name == part) return each.time;
  }
  throw std::runtime_error{"no part " + std::string{part}};
}

TEST_CASE("With every profile the prediction is the median of its own interval") {
  for (const std::string& name : software_names()) {
    for (const double unexplained : {0.9, 1.0, 1.1}) {
      Question asked =
          question("llama2-7b", "dgx-a100-80gb",
                   "tensor=2,data=4,micro_batch=1,global_batch=32,seq_len=2048", "megatron-lm");
      asked.software = catalogue_software(name);
      asked.software.unexplained = unexplained;
      if (!conflicts(asked).empty()) continue;
      INFO(name << " " << unexplained);
      const Prediction found = predict(asked);
      CHECK(found.uncertainty.p50 == found.step);
      CHECK(found.uncertainty.p10 < found.step);
      CHECK(found.uncertainty.p90 > found.step);
      if (!found.out_of_memory) CHECK(estimate(asked).step == found.step);
    }
  }
}

TEST_CASE("What a profile's runs left unexplained is a visible part of the step") {
  Question asked =
      question("llama2-7b", "dgx-a100-80gb",
               "tensor=2,data=4,micro_batch=1,global_batch=32,seq_len=2048", "megatron-lm");
  const Prediction usual = predict(asked);
  CHECK(part_named(usual, "unexplained") == Time{});
  for (const double factor : {0.9, 1.1}) {
    asked.software.unexplained = factor;
    const Prediction found = predict(asked);
    CHECK(found.step == scaled(usual.step, factor));
    CHECK(found.mfu == Approx(usual.mfu / factor));
    const Time unexplained = found.step - usual.step;
    CHECK(part_named(found, "unexplained") == unexplained);
    CHECK(part_named(found, "other") == part_named(usual, "other"));
    const auto other = static_cast<std::size_t>(TimeClass::other);
    CHECK(found.breakdown[other] - usual.breakdown[other] == unexplained);
    Time parts{}, bars{};
    for (const Time each : found.breakdown) parts += each;
    for (const WaterfallPart& each : found.waterfall) bars += each.time;
    CHECK(parts == found.step);
    CHECK(bars == found.step);
    CHECK(std::ranges::any_of(found.assumptions, [](const std::string& each) {
      return each.rfind("/software/unexplained: ", 0) == 0;
    }));
  }
}

TEST_CASE("A profile's interval holds its prediction") {
  Json profile = software_profile("megatron-lm");
  profile["uncertainty"]["p10"] = 0.1;
  const Document document = Document::from(profile, "own.json");
  CHECK_THROWS_WITH(read_software(document.root()),
                    "own.json:/uncertainty/p10: expected a number from -3 to 0, found 0.1");
}

}  // namespace
}  // namespace orrery::models
