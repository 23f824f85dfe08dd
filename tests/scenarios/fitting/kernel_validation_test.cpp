#include "scenarios/fitting/kernels/kernel_validation.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "hardware/curves/measured.hpp"

using namespace orrery;
using namespace orrery::scenarios;

namespace {

constexpr const char* kernel_header =
    "id,source,kernel,implementation,gpu,dtype,m,n,k_or_seq,time_us,includes,set_aside\n";

std::vector<MeasuredKernel> kernel_rows_of(const std::string& lines) {
  return read_kernels(orrery::Table::parse(kernel_header + lines, "rows.csv"));
}

/// 3 x 4 GEMMs on an H100 that run at 500 TFLOP/s, with so many per cent more at n = 4096.
std::string gemms(double more) {
  std::string lines;
  int id = 0;
  for (const int n : {2048, 4096, 8192}) {
    for (const int m : {1024, 2048, 4096, 8192}) {
      const double micros = 2.0 * m * n * 4096 / 500e12 * 1e6 * (n == 4096 ? 1 + more / 100 : 1);
      lines += "r" + std::to_string(++id) + ",s,gemm,trtllm-linear,h100-sxm-80gb,bf16," +
               std::to_string(m) + "," + std::to_string(n) + ",4096," + std::to_string(micros) +
               ",,\n";
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("A row's prediction does not change when the times of its own curve do") {
  // The curve n = 4096, k = 4096 doubles its times: its own predictions must not move, while the
  // fit that has seen it does.
  const auto before = kernel_rows_of(gemms(0));
  const auto after = kernel_rows_of(gemms(100));
  const CurveReport first = validate_kernels(before, {.reference = before});
  const CurveReport second = validate_kernels(after, {.reference = after});
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i].n != 4096) continue;
    INFO(before[i].id);
    CHECK(*first.rows[i].predicted == *second.rows[i].predicted);
    CHECK(*second.rows[i].in_sample > 1.2 * *first.rows[i].in_sample);
  }
}

TEST_CASE("A call that no fit has seen is predicted by all rows") {
  const auto reference = kernel_rows_of(gemms(0));
  const auto other =
      kernel_rows_of("new,s,gemm,trtllm-linear,h100-sxm-80gb,bf16,3072,4096,4096,206.158,,\n");
  const CurveReport report = validate_kernels(other, {.reference = reference});
  CHECK(*report.rows[0].predicted == *report.rows[0].in_sample);
  // 2 * 3072 * 4096 * 4096 FLOPs at 500 TFLOP/s are 206.158 us.
  CHECK(*report.rows[0].predicted == Approx(206.158e-6).epsilon(0.02));
}

TEST_CASE("A row that is set aside or of an unknown GPU is listed and not scored") {
  const auto rows =
      kernel_rows_of(gemms(0) +
                     "odd,s,gemm,x,h100-sxm-80gb,bf16,1024,1024,1024,10,,isolated spike\n"
                     "who,s,gemm,x,h999,bf16,1024,1024,1024,10,,\n"
                     "no,s,rope_forward,x,h100-sxm-80gb,bf16,,,,10,,\n");
  const CurveReport report = validate_kernels(rows, {.reference = rows});
  const CurveRow& odd = report.rows[12];
  CHECK(odd.not_scored_because == "isolated spike");
  CHECK(odd.predicted);
  CHECK(report.rows[13].not_scored_because == "unknown GPU 'h999'");
  CHECK(!report.rows[13].predicted);
  CHECK(report.rows[14].not_scored_because == "states no size");
  const Json json = to_json(report, {});
  CHECK(json["rows"] == 15);
  CHECK(json["scored"] == 12);
  CHECK(json["runs"][13]["predicted_s"].is_null());
}

TEST_CASE("A curve says its range, its source, its errors and what its rows include") {
  const auto rows = kernel_rows_of(gemms(0));
  const CurveReport report = validate_kernels(rows, {.reference = rows, .describe_curves = true});
  REQUIRE(report.cards.size() == 1);
  const Json file = curve_file(report.cards[0]);
  CHECK(file["name"] == "gemm|trtllm-linear|h100-sxm-80gb|bf16");
  CHECK(file["rows"] == 12);
  CHECK(file["range"]["m"] == Json::array({1024, 8192}));
  CHECK(file["range"]["n"] == Json::array({2048, 8192}));
  CHECK(file["source"] == "s");
  CHECK(file["includes"].is_null());
  CHECK(file["leave_out"]["rows"] == 12);
  CHECK(file["residual"]["m"].size() == 12);
}

TEST_CASE("Rows count as training by their length: m from 1,024 and 20 us") {
  const auto rows = kernel_rows_of(
      "a,s,gemm,trtllm-linear,h100-sxm-80gb,bf16,1024,4096,4096,70,,\n"
      "b,s,gemm,trtllm-linear,h100-sxm-80gb,bf16,1024,1024,1024,10,,\n"
      "c,s,gemm,trtllm-linear,h100-sxm-80gb,bf16,512,65536,4096,700,,\n");
  CHECK(score_class(rows[0]) == "gemm, training");
  CHECK(score_class(rows[1]) == "gemm, few rows or short");
  CHECK(score_class(rows[2]) == "gemm, few rows or short");
}

TEST_CASE("A whole GPU can be left out, and its GEMMs follow from another's shares of peak") {
  // H200 has the peak of H100. The compute-bound GEMMs of the one predict those of the other;
  // without another GPU nobody answers.
  std::string h200 = gemms(0);
  for (std::size_t at = 0; (at = h200.find("h100-sxm-80gb", at)) != std::string::npos;) {
    h200.replace(at, 13, "h200-sxm-141gb");
  }
  const auto rows = kernel_rows_of(gemms(0) + h200);
  const CurveReport both = validate_kernels(rows, {.reference = rows, .leave_out = LeaveOut::gpu});
  CHECK(*both.rows[12].predicted == Approx(*both.rows[12].measured).epsilon(0.05));
  const auto alone = kernel_rows_of(gemms(0));
  const CurveReport one = validate_kernels(alone, {.reference = alone, .leave_out = LeaveOut::gpu});
  CHECK(!one.rows[0].predicted);
  CHECK(one.rows[0].not_scored_because == "no other GPU has this table");
}

// The bounds are those that a reader of the tables may expect; the README of hardware/measured
// names the rows.
TEST_CASE("Published kernels are predicted by curves that have not seen them", "[slow]") {
  const auto rows = read_kernels(hardware::measured_kernels());
  const Json json = to_json(validate_kernels(rows, {.reference = rows}), {});
  const Json& classes = json["by"]["class"];
  const auto error = [&](const char* name, const char* which) {
    return classes[name][which].get<double>();
  };
  CHECK(error("gemm, training", "median_abs_error_pct") < 3.5);
  CHECK(error("gemm, training", "p90_abs_error_pct") < 11);
  CHECK(error("attention prefill, s >= 2048", "median_abs_error_pct") < 3.5);
  CHECK(error("attention prefill, s >= 2048", "p90_abs_error_pct") < 11);
  CHECK(error("memory-bound forward, fused", "median_abs_error_pct") < 5);
}
