#include "models/prediction/uncertainty.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "models/prediction/prediction.hpp"
#include "models/prediction/published_errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

TEST_CASE(
    "The interval is the stack's residuals around the step, wider where fallback curves are used") {
  // Measured over predicted from e^-0.1 to e^0.2; with two fallback curves 1.3^2 = 1.69 times that.
  const Residuals residuals{.p10 = -0.1, .p90 = 0.2, .rows = 30, .source = "test"};
  const Uncertainty own = uncertainty_of(from_seconds(10), residuals, 0);
  CHECK(seconds(own.p10) == Approx(10 * std::exp(-0.1)));
  CHECK(own.p50 == from_seconds(10));
  CHECK(seconds(own.p90) == Approx(10 * std::exp(0.2)));
  const Uncertainty fallback = uncertainty_of(from_seconds(10), residuals, 2);
  CHECK(seconds(fallback.p10) == Approx(10 * std::exp(-0.169)));
  CHECK(seconds(fallback.p90) == Approx(10 * std::exp(0.338)));
}

TEST_CASE("A stack that nobody has fitted is as uncertain as the generic profile") {
  const Residuals of_nobody = residuals_of(Software{}, {});
  const Residuals of_megatron = residuals_of(catalogue_software("megatron-lm"), {});
  CHECK(of_nobody.p90 - of_nobody.p10 > 2 * (of_megatron.p90 - of_megatron.p10));
}

TEST_CASE("Residuals say whose runs they are of") {
  CHECK(residuals_of(catalogue_software("megatron-lm"), {}).of == "this stack");
  CHECK(residuals_of(catalogue_software("generic"), {}).of == "all stacks");
  CHECK(residuals_of(Software{}, {}).of == "all stacks");
}

Software fitted_at_selene() {
  Software software;
  software.year = 2021;
  software.residuals = Residuals{.p10 = -0.06,
                                 .p90 = 0.08,
                                 .rows = 30,
                                 .source = "test",
                                 .places = {{"selene", "a100-sxm-80gb", "infiniband"}},
                                 .from_year = 2020,
                                 .to_year = 2022};
  return software;
}

TEST_CASE("A cluster whose site a stack was measured at gets the interval of that site") {
  const Software megatron = catalogue_software("megatron-lm");
  CHECK(distance_of(megatron, hardware::named_cluster("selene")) == Distance::same_site);
  CHECK(distance_of(megatron, hardware::named_cluster("dgx-a100-80gb x 128")) ==
        Distance::another_site);
}

TEST_CASE("The interval is wider the further a question lies from the runs of its stack") {
  hardware::Cluster cluster;
  cluster.site.name = "selene";
  Software software = fitted_at_selene();
  CHECK(distance_of(software, cluster) == Distance::same_site);
  CHECK(residuals_of(software, {}, cluster).p90 == 0.08);
  // 1.28 of the 0.07 that sites lie apart: sqrt(0.06^2 + 0.0896^2), sqrt(0.08^2 + 0.0896^2).
  cluster.site.name = "";
  CHECK(distance_of(software, cluster) == Distance::another_site);
  CHECK(residuals_of(software, {}, cluster).p10 == Approx(-std::hypot(0.06, 0.0896)));
  CHECK(residuals_of(software, {}, cluster).p90 == Approx(std::hypot(0.08, 0.0896)));
  software.year = 2024;
  CHECK(distance_of(software, cluster) == Distance::another_era);
  const double era = 1.28 * std::hypot(0.07, 0.06);
  CHECK(residuals_of(software, {}, cluster).p90 == Approx(std::hypot(0.08, era)));
  // Of no stack that was measured: 0.7 below and 1.7 above sqrt(0.05^2 + 0.07^2 + 0.07^2).
  software.residuals.reset();
  software.lineage = "megatron";
  CHECK(distance_of(software, cluster) == Distance::unseen_stack);
  const Residuals unseen = residuals_of(software, {}, cluster);
  CHECK(unseen.p10 == Approx(-0.7 * std::sqrt(0.0123)));
  CHECK(unseen.p90 == Approx(1.7 * std::sqrt(0.0123)));
  CHECK(unseen.of == "all stacks, wider for a stack without runs of its own");
  software.lineage = "";
  CHECK(distance_of(software, cluster) == Distance::unknown_stack);
  CHECK(residuals_of(software, {}, cluster).p90 ==
        residuals_of(catalogue_software("generic"), {}).p90);
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

TEST_CASE("A plan that shards gradients is as uncertain as published runs of that kind") {
  Plan plan;
  plan.data = 8;
  plan.zero = Zero::three;
  const PublishedErrors& record = published_errors();
  const Residuals of_all = residuals_of(catalogue_software("nanotron"), plan);
  CHECK(of_all.rows == record.sharded.rows);
  CHECK(of_all.p10 == std::min(0.0, record.sharded.log_p10));
  CHECK(of_all.of == "ZeRO-2, ZeRO-3 and FSDP on all stacks");
  // Its own has more than ten.
  const Residuals own = residuals_of(catalogue_software("composer-fsdp"), plan);
  CHECK(own.rows == record.sharded_by_profile.at("composer-fsdp").rows);
  CHECK(own.of == "ZeRO-2, ZeRO-3 and FSDP on this stack");
  plan.data = 1;  // nobody to share with
  CHECK(residuals_of(catalogue_software("megatron-lm"), plan).of == "this stack");
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
