// The commands on tables of kernels and collectives, through the binary.

#include <string>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

// 2 * 4096^3 FLOPs in 200 us are 687 TFLOP/s of 989.
constexpr const char* kernels =
    "id,kernel,gpu,dtype,m,n,k_or_seq,time_us\n"
    "one,gemm,h100-sxm-80gb,bf16,4096,4096,4096,200\n"
    "two,gemm,h100-sxm-80gb,bf16,4096,4096,4096,\n";

constexpr const char* collectives =
    "id,collective,gpu,gpus,nodes,link,bytes,time_us\n"
    "one,all_reduce,h100-sxm-80gb,8,1,NVLink4,1073741824,4000\n";

}  // namespace

TEST_CASE("validate predicts a table of kernels row by row") {
  const Scratch scratch;
  const Ran ran = orrery("validate --json " + scratch.write("kernels.csv", kernels));
  REQUIRE(ran.exit_code == 0);
  const Json json = Json::parse(ran.out);
  CHECK(json["kind"] == "kernels");
  CHECK(json["rows"] == 2);
  CHECK(json["scored"] == 1);
  const Json& one = json["runs"][0];
  CHECK(one["run"] == "one");
  CHECK(one["measured_s"].get<double>() == Approx(200e-6).epsilon(1e-12));
  const double predicted = one["predicted_s"].get<double>();
  CHECK(predicted > 139e-6);  // the whole peak
  CHECK(predicted < 250e-6);
  CHECK(one["error_pct"].get<double>() == Approx(100 * (predicted / 200e-6 - 1)).epsilon(1e-9));
  CHECK(json["runs"][1]["measured_s"].is_null());
  CHECK(json["runs"][1]["error_pct"].is_null());
  CHECK(json["runs"][1]["not_scored_because"] == "no time measured");
}

TEST_CASE("validate predicts a table of collectives row by row") {
  const Scratch scratch;
  const Ran ran = orrery("validate --json " + scratch.write("nccl.csv", collectives));
  REQUIRE(ran.exit_code == 0);
  const Json json = Json::parse(ran.out);
  CHECK(json["kind"] == "collectives");
  // 1 GiB crosses at most 480 GB/s of bus bandwidth: 1.75 GiB / 480 GB/s = 3.9 ms.
  CHECK(json["runs"][0]["predicted_s"].get<double>() == Approx(4e-3).epsilon(0.15));
  CHECK(json["runs"][0].contains("in_sample_s"));
}

TEST_CASE("validate says where a cell of a kernel is wrong") {
  const Scratch scratch;
  const std::string file = scratch.write("kernels.csv",
                                         "id,kernel,gpu,dtype,m,n,k_or_seq,time_us\n"
                                         "one,gemm,h100-sxm-80gb,bf16,0,4096,4096,200\n");
  const Ran ran = orrery("validate " + file);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.error == file + ":line 2: column 'm': expected a count of at least 1, found \"0\"\n");
}

TEST_CASE("validate refuses for kernels and collectives what is for training runs") {
  const Scratch scratch;
  for (const char* text : {kernels, collectives}) {
    const std::string file = scratch.write("curves.csv", text);
    for (const char* flag : {"--page", "--record", "--leave-out", "--software"}) {
      CHECK(refused_line("validate " + file + " " + flag + " x") ==
            std::string{flag} + ": expected a file of training runs");
    }
  }
}

TEST_CASE("fit curves refuses a table of something else") {
  const Scratch scratch;
  const std::string file = scratch.write("x.csv", "id,colour\n1,red\n");
  const Ran ran = orrery("fit curves --from " + file);
  CHECK(ran.exit_code == 2);
  CHECK(ran.error == file +
                         ": holds neither kernels nor collectives; accepted: a header with "
                         "kernel, gpu, dtype, m, n, k_or_seq and time_us, or with collective, "
                         "gpu, gpus, nodes, link, bytes and time_us\n");
}

TEST_CASE("fit curves writes one file for each curve, with its errors") {
  const Scratch scratch;
  std::string lines = "id,source,kernel,gpu,dtype,m,n,k_or_seq,time_us\n";
  for (int m = 512; m <= 8192; m *= 2) {
    for (int n = 1024; n <= 4096; n *= 2) {
      lines += std::to_string(m) + "x" + std::to_string(n) + ",me,gemm,h100-sxm-80gb,bf16," +
               std::to_string(m) + "," + std::to_string(n) + ",4096," +
               std::to_string(2.0 * m * n * 4096 / 6e8) + "\n";
    }
  }
  const std::string file = scratch.write("mine.csv", lines);
  const Ran ran = orrery("fit curves --json --from " + file + " --out " + scratch.path("out"));
  REQUIRE(ran.exit_code == 0);
  const Json curve = Json::parse(scratch.read("out/gemm--h100-sxm-80gb-bf16.json"));
  CHECK(curve["rows"] == 15);
  CHECK(curve["source"] == "me");
  CHECK(curve["leave_out"]["median_abs_error_pct"].get<double>() < 5);
  // 600 TFLOP/s of 989.
  CHECK(curve["parameters"]["compute_share"].get<double>() == Approx(0.607).epsilon(0.02));
  CHECK(Json::parse(ran.out)["curves"].size() == 1);
}

}  // namespace orrery::scenarios
