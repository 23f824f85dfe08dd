// Measured tables: between their points, and beyond them.
#include "hardware/curves/size_table.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "hardware/curves/calibration.hpp"
#include "sim/errors.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {
namespace {

SizeTable table() {
  return SizeTable{{{100_B, 10_us}, {400_B, 40_us}, {1000_B, 52_us}}};
}

Document document(const char* text) {
  return Document::parse(text, "profile.json");
}

TEST_CASE("A table answers its own points with what was measured") {
  CHECK(table().at(100_B) == 10_us);
  CHECK(table().at(400_B) == 40_us);
  CHECK(table().at(1000_B) == 52_us);
}

TEST_CASE("Between two points the time is a line in the logarithms") {
  // From 100 B, 10 us to 400 B, 40 us both grow fourfold: at twice the size twice the time.
  CHECK(seconds(table().at(200_B)) == Approx(20e-6).epsilon(1e-9));
}

TEST_CASE("Below a table is its latency, beyond it its last slope") {
  CHECK(table().at(1_B) == 10_us);
  // 12 us for 600 B: 20 ns a byte, 500 B more.
  CHECK(table().at(1500_B) == 62_us);
  CHECK(table().covers(100_B));
  CHECK_FALSE(table().covers(99_B));
  CHECK_FALSE(table().covers(1001_B));
}

TEST_CASE("A table that falls at its end does not fall further") {
  const SizeTable falling{{{100_B, 10_us}, {200_B, 9_us}}};
  CHECK(falling.at(10000_B) == 9_us);
}

TEST_CASE("A table of one point goes on in proportion") {
  const SizeTable lone{{{100_B, 10_us}}};
  CHECK(lone.at(300_B) == 30_us);
}

TEST_CASE("Sizes that do not increase are no table") {
  CHECK_THROWS_AS((SizeTable{{{100_B, 10_us}, {100_B, 11_us}}}), ContractError);
  CHECK_THROWS_AS(SizeTable{std::vector<SizeTable::Point>{}}, ContractError);
  CHECK_THROWS_AS(SizeTable{}.at(1_B), ContractError);
}

TEST_CASE("A calibration reads its tables, shapes and slowdowns") {
  const Document file = document(R"({
    "kernels": {"norm": {"points": [["1 kB", "2 us"], ["4 kB", "8 us"]]},
                "add": {"overhead": "1 us", "rate": "1 GB/s"}},
    "gemm": {"fp32": [[64, 64, 64, 2.0]]},
    "grouped_gemm": {"bf16": [[32, 64, 64, 1.5]]},
    "batched": {"fp32": {"compute_share": 0.5, "memory_share": 1, "overhead": "1 us", "corner": 4}},
    "concurrency": [{"ranks": 2, "gemm": 1.2, "memory_bound": 1.5},
                    {"ranks": 4, "gemm": 2.4, "memory_bound": 2.5}],
    "beside_communication": {"compute": 1.07, "communication": 1.2},
    "host_link": {"to_device": [["1 MB", "20 us"]], "from_device": [["1 MB", "25 us"]]}})");
  const Calibration read = read_calibration(file.root());
  REQUIRE(read.kernel("norm") != nullptr);
  CHECK(seconds(read.kernel("norm")->at(2000_B)) == Approx(4e-6).epsilon(1e-9));
  CHECK(read.kernel("add")->at(3000_B) == 4_us);  // 1 us + 3 kB at 1 GB/s
  CHECK(read.kernel("softmax") == nullptr);
  CHECK(read.gemm.at(DType::fp32).log_ratio({64, 64, 64}) == Approx(std::log(2.0)));
  CHECK(read.grouped_gemm.at(DType::bf16).log_ratio({32, 64, 64}) == Approx(std::log(1.5)));
  CHECK(read.batched.at(DType::fp32).compute_share == 0.5);
  CHECK(read.beside_communication.value().compute == 1.07);
  CHECK(read.beside_communication.value().communication == 1.2);
  CHECK(read.host_link.value().to_device.at(1_MB) == 20_us);
  CHECK(read.host_link.value().from_device.at(1_MB) == 25_us);
}

TEST_CASE("Ranks at once slow each other down, on a line between what was measured") {
  Calibration measured;
  CHECK(measured.slowdown(KernelClass::gemm, 8) == 1);
  measured.concurrency = {{2, 1.2, 1.5}, {4, 2.4, 2.5}};
  CHECK(measured.slowdown(KernelClass::gemm, 1) == 1);
  CHECK(measured.slowdown(KernelClass::gemm, 2) == 1.2);
  CHECK(measured.slowdown(KernelClass::gemm, 3) == Approx(1.8));          // midway to 2.4
  CHECK(measured.slowdown(KernelClass::memory_bound, 8) == Approx(5.0));  // twice that of 4
}

TEST_CASE("What is wrong in a calibration is reported with its place") {
  const auto refusal = [](const char* text) {
    try {
      const Document file = document(text);
      read_calibration(file.root());
    } catch (const InputError& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  CHECK(refusal(R"({"kernels": {"norm": {"points": []}}})") ==
        "profile.json:/kernels/norm/points: a table needs a point");
  CHECK(refusal(R"({"kernels": {"norm": {"points": [["2 B", "1 us"], ["1 B", "1 us"]]}}})") ==
        "profile.json:/kernels/norm/points/1: sizes must increase");
  CHECK(refusal(R"({"gemm": {"fp32": [[1, 2, 3]]}})") ==
        "profile.json:/gemm/fp32/0: expected [m, n, k, measured over curve], found [1,2,3]");
  CHECK(refusal(R"({"concurrency": [{"ranks": 1, "gemm": 1, "memory_bound": 1}]})") ==
        "profile.json:/concurrency/0/ranks: expected an integer from 2 to 65536, found 1");
  CHECK(refusal(R"({"beside_communication": {"compute": 0.9, "communication": 1}})") ==
        "profile.json:/beside_communication/compute: expected a number from 1 to 100, found 0.9");
  CHECK(refusal(R"({"host_link": {"to_device": [["1 MB", "20 us"]]}})") ==
        "profile.json:/host_link/from_device: missing");
}

}  // namespace
}  // namespace orrery::hardware
