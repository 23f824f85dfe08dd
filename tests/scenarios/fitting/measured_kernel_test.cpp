// Words and times of tables of kernels and collectives that nothing knows are refused, not taken
// for something else.

#include "scenarios/fitting/kernels/measured_kernel.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/fitting/collectives/measured_collective.hpp"
#include "scenarios/fitting/kernels/kernel_fit.hpp"
#include "scenarios/fitting/kernels/kernel_validation.hpp"
#include "scenarios/fitting/profile/beyond_range.hpp"

namespace orrery::scenarios {
namespace {

MeasuredKernel kernel_of(const std::string& kernel, const std::string& includes,
                         const std::string& time = "100") {
  const std::string text =
      "id,kernel,implementation,gpu,dtype,m,n,k_or_seq,heads,head_dim,batch,causal,time_us,"
      "includes\nk1," +
      kernel + ",FlashAttention-2,h100-sxm-80gb,bf16,,,4096,32,128,4,1," + time + "," + includes +
      "\n";
  return read_kernels(orrery::Table::parse(text, "kernels.csv")).at(0);
}

TEST_CASE("A pass of attention is what its name says, and a name that nothing knows is refused") {
  CHECK(score_class(kernel_of("flash_fwd", "")) == "attention forward, fused");
  CHECK(score_class(kernel_of("flash_bwd", "")) == "attention backward, fused");
  CHECK(score_class(kernel_of("flash_fwd_bwd", "")) == "attention forward and backward, fused");
  CHECK_THROWS_WITH(kernel_of("flash_decode", ""),
                    "kernels.csv:line 2: column 'kernel': expected flash_fwd, flash_bwd or "
                    "flash_fwd_bwd, found \"flash_decode\"");
}

TEST_CASE("Attention is a prefill where its row includes the KV cache, not whatever it includes") {
  CHECK(form_of(kernel_of("flash_fwd", "kv-cache write and copies")) == KernelForm::prefill);
  CHECK(form_of(kernel_of("flash_fwd", "host time below 300 us")) == KernelForm::fused_attention);
  CHECK(includes(kernel_of("flash_fwd", "host time below 300 us; whole MLP with its GEMMs"),
                 Included::whole_mlp));
  CHECK_THROWS_WITH(
      kernel_of("flash_fwd", "see notes"),
      "kernels.csv:line 2: column 'includes': expected nothing, or 'activation quantisation', "
      "'kv-cache write and copies', 'host time below 300 us', 'whole MLP with its GEMMs', "
      "separated "
      "by '; ', found \"see notes\"");
}

TEST_CASE("A time that no GPU can take is refused with the times that are accepted") {
  CHECK(*kernel_of("flash_fwd", "", "0.001").seconds == Approx(1e-9));
  for (const char* time : {"1e-320", "0", "-1", "1e300"}) {
    CHECK_THROWS_AS(kernel_of("flash_fwd", "", time), InputError);
  }
  CHECK_THROWS_WITH(
      read_collectives(
          orrery::Table::parse("id,collective,gpu,gpus,nodes,link,bytes,time_us\n"
                               "c1,all_reduce,h100-sxm-80gb,8,1,NVLink4,1048576,1e-320\n",
                               "collectives.csv")),
      "collectives.csv:line 2: column 'time_us': expected a time from 0.001 us (two clock cycles "
      "of a GPU) to 2.6e12 us, found \"1e-320\"");
}

/// Times of all-reduces whose rate falls off beyond 16 MB.
std::string all_reduces(double slope_beyond) {
  std::string text = "id,collective,gpu,gpus,nodes,link,bytes,time_us\n";
  for (int i = 0; i < 10; ++i) {
    const double size = std::pow(2.0, i);
    const double time = size <= 16 ? size : 16 * std::pow(size / 16, slope_beyond);
    text += "c" + std::to_string(i) + ",all_reduce,h100-sxm-80gb,8,1,NVLink4," +
            std::to_string(static_cast<long>(size) * 1000000) + "," + std::to_string(100 * time) +
            "\n";
  }
  return text;
}

TEST_CASE("How far off curves are beyond their range is measured on what was left out") {
  // A line in log(size), log(time) continues: no error. With a kink, the fit to sizes before it
  // errs by the change of slope times ln(factor).
  const auto straight =
      points_beyond_range(orrery::Table::parse(all_reduces(1), "collectives.csv"));
  REQUIRE_FALSE(straight.empty());
  int above = 0;
  for (const BeyondPoint& each : straight) {
    CHECK(each.factor > 1);
    above += std::abs(each.error) < 1e-6 ? 1 : 0;
  }
  CHECK(above > 0);
  const Json bent =
      beyond_range_json(points_beyond_range(orrery::Table::parse(all_reduces(1.5), "c.csv")));
  const Json flat =
      beyond_range_json(points_beyond_range(orrery::Table::parse(all_reduces(1), "c.csv")));
  CHECK(bent["collective"]["per_factor_e"].get<double>() >
        flat["collective"]["per_factor_e"].get<double>());
}

}  // namespace
}  // namespace orrery::scenarios
