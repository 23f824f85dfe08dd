#include "models/prediction/uncertainty.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/input/document.hpp"

namespace orrery::models {
namespace {

TEST_CASE(
    "The interval is the stack's residuals around the step, wider where curves are borrowed") {
  // Measured over predicted from e^-0.1 to e^0.2; with two borrowed curves 1.3^2 = 1.69 times that.
  Software software;
  software.residuals = Residuals{.p10 = -0.1, .p90 = 0.2, .rows = 30, .source = "test"};
  const Uncertainty own = uncertainty_of(from_seconds(10), software, 0);
  CHECK(seconds(own.p10) == Approx(10 * std::exp(-0.1)));
  CHECK(own.p50 == from_seconds(10));
  CHECK(seconds(own.p90) == Approx(10 * std::exp(0.2)));
  const Uncertainty borrowed = uncertainty_of(from_seconds(10), software, 2);
  CHECK(seconds(borrowed.p10) == Approx(10 * std::exp(-0.169)));
  CHECK(seconds(borrowed.p90) == Approx(10 * std::exp(0.338)));
}

TEST_CASE("A stack that nobody has fitted is as uncertain as the generic profile") {
  const Residuals of_nobody = residuals_of(Software{});
  const Document document = Document::from(software_profile("megatron-lm"), "megatron-lm");
  const Residuals of_megatron = residuals_of(read_software(document.root()));
  CHECK(of_nobody.p90 - of_nobody.p10 > 2 * (of_megatron.p90 - of_megatron.p10));
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
