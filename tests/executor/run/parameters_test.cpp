// What a run begins with is a function of seed, tensor and index, whoever draws it and however many
// at a time.

#include <catch2/catch.hpp>
#include <mutex>

#include "executor/device/half.hpp"
#include "executor/run/weights/random.hpp"
#include "tests/executor/cuts.hpp"

namespace orrery::executor {
namespace {

using models::Plan;
using models::Precision;
using models::Zero;

RandomStream stream_of(std::string_view tensor) {
  return {1, stream_number(tensor)};
}

TEST_CASE("Numbers drawn many at a time have the bits of those drawn one by one") {
  const RandomStream random = stream_of("layer0.qkv.weight");
  for (const std::uint64_t first : {std::uint64_t{0}, (std::uint64_t{1} << 32) - 700}) {
    for (const double deviation : {0.02, 1.0}) {
      std::vector<float> many(300'001);
      random.normals(first, deviation, many);
      std::size_t others = 0;
      for (std::size_t i = 0; i < many.size(); ++i) {
        others += many[i] != static_cast<float>(deviation * random.normal(first + i)) ? 1 : 0;
      }
      CHECK(others == 0);
    }
  }
}

TEST_CASE("Parameters are those that every version has drawn") {
  // Recorded when each was drawn by itself, with the mathematical library's functions of one
  // number.
  const auto drawn = [](std::string_view tensor, std::uint64_t index) {
    std::vector<float> one(1);
    stream_of(tensor).normals(index, 0.02, one);
    return one[0];
  };
  CHECK(drawn("embedding.weight", 0) == 0x1.ac9ca2p-8F);
  CHECK(drawn("embedding.weight", 1) == 0x1.36e3ecp-7F);
  CHECK(drawn("embedding.weight", 70000) == 0x1.88d592p-9F);
  CHECK(drawn("embedding.weight", 5000000000) == -0x1.31d6bap-6F);
  CHECK(drawn("layer0.qkv.weight", 70000) == 0x1.6fa882p-10F);
  CHECK(drawn("layer0.qkv.weight", 5000000000) == -0x1.de9bbcp-8F);
  std::vector<float> many(1 << 20);
  stream_of("layer0.qkv.weight").normals(0, 0.02, many);
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const float each : many) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(each)) * 0x100000001b3U;
  }
  CHECK(hash == 0x90a54ef9e01c4b88U);
}

/// By its definition: no cut, no threads, one number after another.
double begins_with(const std::string& tensor, std::uint64_t index) {
  if (tensor.ends_with(".bias")) return 0;
  if (tensor.find("norm") != std::string::npos) return 1;
  return 0.02 * stream_of(tensor).normal(index);
}

TEST_CASE("A run begins with the same parameters in every cut and precision") {
  for (const Precision precision : {Precision::fp64, Precision::fp32, Precision::bf16}) {
    for (Cut each : cuts()) {
      each.plan.formats.precision = precision;
      INFO(each.name << ", precision " << static_cast<int>(precision));
      const Outcome begun = run({.model = each.model, .plan = each.plan, .steps = 0});
      std::size_t others = 0;
      for (const auto& [name, values] : begun.parameters) {
        for (std::size_t i = 0; i < values.size(); ++i) {
          const double exact = begins_with(name, i);
          const bool wide = precision == Precision::fp64;
          others += values[i] != (wide ? exact : static_cast<float>(exact)) ? 1 : 0;
        }
      }
      CHECK(others == 0);
    }
  }
}

/// What the embedding of each rank reads in its first step, as 16 bits.
std::vector<std::vector<std::uint16_t>> first_tables(const Cut& of) {
  std::vector<std::vector<std::uint16_t>> tables;
  std::mutex lock;
  Job job{.model = of.model, .plan = of.plan};
  job.disturb = [&](Kernel& kernel) {
    if (kernel.operation->kind != models::OpKind::embedding) return;
    const View& table = kernel.reads[1];
    const auto* first = reinterpret_cast<const std::uint16_t*>(table.data);
    const std::lock_guard guard{lock};
    tables.emplace_back(first, first + table.elements());
  };
  run(job);
  return tables;
}

TEST_CASE("Working copies of 16 bits are the drawn parameters, rounded, whoever owns them") {
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    std::vector<std::uint16_t> expected;
    for (std::uint64_t i = 0; i < 37 * 16; ++i) {
      const auto exact = static_cast<float>(begins_with("embedding.weight", i));
      Bf16 bf16;
      Fp16 fp16;
      narrow(exact, bf16);
      narrow(exact, fp16);
      expected.push_back(precision == Precision::bf16 ? bf16.bits : fp16.bits);
    }
    for (const Zero zero : {Zero::none, Zero::one, Zero::two, Zero::three}) {
      INFO("ZeRO " << static_cast<int>(zero));
      const auto tables = first_tables(cut("table", small_llama(), [&](Plan& p) {
        p.formats.precision = precision;
        p.data = 2;
        p.batch.micro = 2;
        p.sharding.zero = zero;
      }));
      CHECK(tables.size() == 2);
      for (const auto& each : tables) CHECK(each == expected);
    }
  }
}

TEST_CASE("Drawing says how far it has come") {
  models::Model wide = small_gpt(1);
  wide.embedding.vocab = 300'000;  // 4.8 million numbers, more than are drawn at once
  Plan plan = small_plan(1);
  plan.formats.precision = Precision::fp32;
  std::vector<std::int64_t> said;
  std::int64_t all = 0;
  Job job{.model = wide, .plan = plan, .steps = 0};
  job.settings.drawn = [&](std::int64_t drawn, std::int64_t of) {
    said.push_back(drawn);
    all = of;
  };
  run(job);
  CHECK(said.size() >= 2);
  CHECK(std::is_sorted(said.begin(), said.end()));
  CHECK(all > 4'800'000);
  CHECK(said.back() == all);
}

}  // namespace
}  // namespace orrery::executor
