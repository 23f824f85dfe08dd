#include "models/prediction/uncertainty.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/prediction/published_errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

TEST_CASE(
    "The interval is the stack's residuals around the step, wider where curves are borrowed") {
  // Measured over predicted from e^-0.1 to e^0.2; with two borrowed curves 1.3^2 = 1.69 times that.
  const Residuals residuals{.p10 = -0.1, .p90 = 0.2, .rows = 30, .source = "test"};
  const Uncertainty own = uncertainty_of(from_seconds(10), residuals, 0);
  CHECK(seconds(own.p10) == Approx(10 * std::exp(-0.1)));
  CHECK(own.p50 == from_seconds(10));
  CHECK(seconds(own.p90) == Approx(10 * std::exp(0.2)));
  const Uncertainty borrowed = uncertainty_of(from_seconds(10), residuals, 2);
  CHECK(seconds(borrowed.p10) == Approx(10 * std::exp(-0.169)));
  CHECK(seconds(borrowed.p90) == Approx(10 * std::exp(0.338)));
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

TEST_CASE("A plan that shards gradients is as uncertain as published runs of that kind") {
  Plan plan;
  plan.data = 8;
  plan.zero = Zero::three;
  const PublishedErrors& record = published_errors();
  const Residuals of_all = residuals_of(catalogue_software("megatron-lm"), plan);
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
