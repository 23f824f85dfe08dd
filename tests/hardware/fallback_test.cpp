#include "hardware/gpu/fallback.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "hardware/gpu/gpu_power.hpp"
#include "hardware/gpu/power_limit.hpp"

namespace orrery::hardware {
namespace {

/// A GPU of the catalogue with a change, as a file of one's own.
Gpu changed(const std::string& name, const Json& change) {
  Json gpu = Catalogue::gpu(name);
  gpu.merge_patch(change);
  const Document file = Document::from(gpu, "mine.json");
  return read_gpu(file.root());
}

std::string error_of(const std::string& name, const Json& change) {
  try {
    changed(name, change);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

double bf16_share(const Gpu& gpu) {
  return gpu.gemm.at(gpu.peak(DType::bf16) ? DType::bf16 : DType::fp16).compute_share;
}

}  // namespace

TEST_CASE("The rule meets the shares that were published, each GPU's own left out") {
  std::vector<double> errors;
  for (const std::string& name : Catalogue::gpus()) {
    const Gpu published = named_gpu(name);
    const PowerRule* rule = power_rule_of(published);
    if (published.published.gemm.empty() || !rule) continue;
    if (rule->peer && rule->peer->gpu == name) continue;
    const Gpu ruled = changed(name, {{"published_shares", nullptr}});
    if (ruled.gemm.at(DType::fp16).origin.spread == unknown_spread) continue;
    errors.push_back(std::abs(bf16_share(ruled) / bf16_share(published) - 1));
    UNSCOPED_INFO(name << ": " << bf16_share(ruled) << " by the rule, " << bf16_share(published)
                       << " published");
  }
  std::ranges::sort(errors);
  REQUIRE(errors.size() >= 6);
  CHECK(errors[errors.size() / 2] < 0.15);
  CHECK(errors[errors.size() * 9 / 10] < 0.25);
  CHECK(errors.back() < 0.4);  // A10, whose 150 W take more than a square root
}

TEST_CASE("A GPU without curves takes the form of another's at its own sustained share") {
  // 0.785 of an H100 at 700 W for 989 TFLOP/s; here 350 W for 989: sqrt(1/2) of it.
  const Gpu h100 = named_gpu("h100");
  const Gpu half = changed(
      "h100",
      {{"name", "h100-half"}, {"gemm", nullptr}, {"attention", nullptr}, {"board_power", "350 W"}});
  const GemmCurve& whole = h100.gemm.at(DType::bf16);
  const GemmCurve& curve = half.gemm.at(DType::bf16);
  CHECK(curve.compute_share == Approx(whole.compute_share * std::sqrt(0.5)));
  CHECK(curve.memory_share == whole.memory_share);
  CHECK(curve.overhead == whole.overhead);
  CHECK(half.gemm.at(DType::fp8).compute_share ==
        Approx(h100.gemm.at(DType::fp8).compute_share * std::sqrt(0.5)));
  CHECK(half.attention.at("flash-3").share_128 ==
        Approx(h100.attention.at("flash-3").share_128 * std::sqrt(0.5)));
  CHECK(curve.origin.spread == Approx(0.18));
  CHECK(half.unmeasured ==
        "no measurement on this GPU: GEMMs of h100-half at 0.555 of peak, by its 0.35 pJ for each "
        "FLOP from h100-sxm-80gb (0.785 at 0.71 pJ); curves have the form of h100-sxm-80gb");
}

TEST_CASE("Another card of the same silicon at the same power takes its curves as they are") {
  const Gpu a100 = named_gpu("a100-sxm-80gb"), smaller = named_gpu("a100-sxm-40gb");
  CHECK(smaller.gemm.at(DType::bf16).compute_share == a100.gemm.at(DType::bf16).compute_share);
  CHECK(smaller.gemm.at(DType::bf16).origin.spread == 0);
  CHECK(smaller.unmeasured.empty());
}

TEST_CASE("A published share stands before the rule, and other formats follow it") {
  const Gpu mi300x = named_gpu("mi300x");
  CHECK(mi300x.gemm.at(DType::bf16).compute_share == 0.51);
  CHECK(mi300x.gemm.at(DType::fp8).compute_share == 0.43);
  CHECK(mi300x.gemm.at(DType::bf16).origin.spread == published_spread);
  // fp4 on B200 reaches 0.472 where bf16 reaches 0.692; MI355X reaches 0.64 in bf16.
  CHECK(named_gpu("mi355x").gemm.at(DType::fp4).compute_share ==
        Approx(0.64 * 0.472 / 0.692).epsilon(0.001));
  CHECK(named_gpu("rtx-4090").attention.at("flash-2").share_128 == Approx(0.98));
}

TEST_CASE("A memory share that was published for a GPU stands for those of its generation") {
  // CDNA 4 runs the kernels of MI355X and CDNA 3 those of MI300X, neither Hopper's.
  CHECK(named_gpu("mi350x").memory_bound.memory_share == 0.45);
  CHECK(named_gpu("mi350x").memory_bound.origin.fallback_from == "mi355x");
  CHECK(named_gpu("mi325x").memory_bound.memory_share == 0.79);
  CHECK(named_gpu("mi325x").memory_bound.origin.fallback_from == "mi300x");
  CHECK(named_gpu("mi250x").memory_bound.origin.fallback_from == "a100-sxm-80gb");
}

TEST_CASE("Attention of MI300X is its own, and that of PyTorch on CDNA lends to its siblings") {
  const Gpu mi300x = named_gpu("mi300x");
  CHECK(mi300x.attention.at("flash-2").origin.fallback_from.empty());
  CHECK(mi300x.attention.at("aotriton").share_128 < mi300x.attention.at("flash-2").share_128);
  for (const char* name : {"mi250x", "mi325x", "mi350x", "mi355x"}) {
    INFO(name);
    CHECK(named_gpu(name).attention.at("aotriton").origin.fallback_from == "mi300x");
  }
}

TEST_CASE("A power limit lowers clocks and energy, and not memory or idle power") {
  const Gpu whole = named_gpu("h100");
  const Gpu limited = changed("h100", {{"power_limit", "350 W"}});
  const double factor = std::sqrt(0.5);
  CHECK(bf16_share(limited) == Approx(bf16_share(whole) * factor));
  CHECK(limited.attention.at("flash-3").share_64 ==
        Approx(whole.attention.at("flash-3").share_64 * factor));
  CHECK(limited.memory_bound.memory_share == whole.memory_bound.memory_share);
  CHECK(limited.gemm.at(DType::bf16).origin.spread > 0);
  CHECK(power_draw(limited).math == Power{350});
  CHECK(power_draw(limited).memory_bound == power_draw(whole).memory_bound);
  CHECK(power_draw(limited).idle == power_draw(whole).idle);
  CHECK(power_limit_note(whole).empty());
  CHECK(power_limit_note(limited) ==
        "power limit of 350 W of 700 W: GEMMs and attention of h100-sxm-80gb at 0.707 of their "
        "rate");
  // 450 W for 165.2 TFLOP/s are 2.72 pJ a FLOP, 2.3 are plenty: 400 W take nothing.
  CHECK(bf16_share(changed("rtx-4090", {{"power_limit", "400 W"}})) ==
        bf16_share(named_gpu("rtx-4090")));
}

TEST_CASE("A power limit below what an idle GPU draws is refused") {
  // Hopper idles at 0.1 of its board power: 70 W of 700.
  CHECK(error_of("h200", {{"power_limit", "1 W"}}) ==
        "mine.json:/power_limit: expected at least 70 W, which h200-sxm-141gb draws when it is "
        "idle, found \"1 W\"");
  CHECK(changed("h200", {{"power_limit", "70 W"}}).power_limit == Power{70});
  CHECK(changed("cpu-core", {{"power_limit", "10 W"}}).power_limit == Power{10});
}

TEST_CASE("A power limit below the lowest that a board accepts is refused, where that is known") {
  CHECK(error_of("h100", {{"power_limit", "100 W"}}) ==
        "mine.json:/power_limit: expected at least 200 W, the lowest that h100-sxm-80gb accepts, "
        "found \"100 W\"");
  CHECK(changed("h100", {{"power_limit", "200 W"}}).power_limit == Power{200});
  CHECK(changed("a100-sxm-80gb", {{"power_limit", "100 W"}}).power_limit == Power{100});
}

TEST_CASE("A limit above the board power and a share of a measured format are refused") {
  CHECK(error_of("h100", {{"power_limit", "800 W"}}) ==
        "mine.json:/power_limit: expected at most the board power of 700 W, found \"800 W\"");
  CHECK(error_of("h100", {{"published_shares", {{"gemm", {{"bf16", 0.7}}}}}}) ==
        "mine.json:/published_shares/gemm/bf16: a share of a format that has a curve");
  CHECK(error_of("mi300x",
                 {{"published_shares", {{"attention", {{"flash-9", {{"share_128", 0.5}}}}}}}}) ==
        "mine.json:/published_shares/attention/flash-9: no GPU has a curve of this kernel");
  CHECK(error_of("h100", {{"silicon", "ga10x"}}) ==
        "mine.json:/silicon: unknown silicon 'ga10x' of generation hopper; known: gh100");
}

TEST_CASE("A new GPU is one file: peaks, power and its silicon are enough") {
  // An RTX 3090: 350 W for 71 TFLOP/s are 4.9 pJ a FLOP, plenty.
  const Document file = Document::parse(R"({"name": "rtx-3090", "generation": "ampere",
      "silicon": "ga10x", "dense_peak": {"bf16": "71 TFLOP/s", "fp32": "35.6 TFLOP/s"},
      "memory": "24 GiB", "memory_bandwidth": "936 GB/s", "board_power": "350 W"})",
                                        "rtx-3090.json");
  const Gpu gpu = read_gpu(file.root());
  CHECK(gpu.gemm.at(DType::bf16).compute_share == 1);
  CHECK(gpu.gemm.at(DType::fp32).compute_share == 0.67);
  CHECK(gpu.attention.at("flash-2").share_128 == Approx(0.9));
  CHECK(gpu.unmeasured.find("the most of its silicon: 4.9 pJ for each FLOP are plenty") !=
        std::string::npos);
}

}  // namespace orrery::hardware
