// Claims about training runs: FLOPs, Amdahl's law, failures, checkpoints.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "scenarios/claims/claims.hpp"
#include "scenarios/scenario/limits.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// The most that language models of 2022 and later reached with FLOPs stated apart from time.
constexpr double most_published_mfu = 0.561;
constexpr const char* of_published_mfu =
    "60 published runs of 2022 and later: median 0.304, at most 0.561";

FlopRate peak_of(const Claim& claim) {
  const Node named = claim.needed("gpu");
  const hardware::Gpu gpu = [&] {
    try {
      return hardware::named_gpu(named.as<std::string>());
    } catch (const InputError& error) {
      named.fail(error.what());
    }
  }();
  const auto type = claim.given("dtype");
  if (type) {
    const auto wanted = hardware::dtype_named(type->as<std::string>());
    const auto peak = wanted ? gpu.peak(*wanted) : std::nullopt;
    if (!peak) type->fail(fmt::format("{} has no peak of this dtype", gpu.name));
    return *peak;
  }
  for (const hardware::DType each : {hardware::DType::bf16, hardware::DType::fp16}) {
    if (const auto peak = gpu.peak(each)) return *peak;
  }
  named.fail("has no peak of bf16 or fp16");
}

/// Days, weeks or any shorter time.
double seconds_long(const Node& node) {
  const auto days = parse_days(node.as<std::string>());
  if (!days) node.fail_expected(days_form);
  return *days * seconds_per_day;
}

double training_flops(const Claim& claim) {
  return 6 * claim.number("parameters") * claim.number("tokens");
}

Judgement judge_layout(const Claim& claim) {
  double product = 1;
  std::string factors;
  for (const char* key : {"data", "tensor", "pipeline", "context"}) {
    const double degree = claim.number_or(key, 1);
    product *= degree;
    if (claim.given(key)) factors += fmt::format("{}{:.0f}", factors.empty() ? "" : " x ", degree);
  }
  const bool equal = claim.number() == product;
  const double data = claim.number() * claim.number_or("data", 1) / product;
  const bool whole = data >= 1 && data == std::floor(data);
  return {.verdict = equal ? Verdict::possible : Verdict::impossible,
          .bound = fmt::format("{:.0f} GPUs", product),
          .formula = "data x tensor x pipeline x context: " + factors,
          .source = "arithmetic",
          .otherwise = equal   ? ""
                       : whole ? fmt::format("data = {:.0f}", data)
                               : "another number of GPUs"};
}

/// 6 parameters tokens / (GPUs x peak)
Judgement judge_training_time(const Claim& claim) {
  const double rate = claim.number("gpus") * peak_of(claim).count();
  const double bound = training_flops(claim) / rate;
  const double value = seconds_long(claim.value());
  const double mfu = bound / value;
  return {.verdict = mfu > 1                    ? Verdict::impossible
                     : mfu > most_published_mfu ? Verdict::implausible
                                                : Verdict::possible,
          .bound = fmt::format("{:.3g} days at the GPUs' peak", bound / seconds_per_day),
          .formula = "6 x parameters x tokens / (GPUs x dense peak)",
          .source = of_published_mfu,
          .otherwise = mfu > most_published_mfu
                           ? fmt::format("{:.0f} such GPUs",
                                         std::ceil(claim.number("gpus") * mfu / most_published_mfu))
                           : ""};
}

/// Model FLOPs of a rate that counts recomputation: 6 of 8. No rate is above the peak.
Judgement judge_mfu(const Claim& claim) {
  const double rate = claim.needed("rate").as<FlopRate>().count();
  const auto recomputation = claim.given("recomputation");
  const bool full = recomputation && recomputation->as<std::string>() == "full";
  const double bound = rate * (full ? 6.0 / 8 : 1) / peak_of(claim).count();
  const bool near = std::abs(claim.number() / bound - 1) < 0.02;
  if (claim.number() > 1 || bound > 1) {
    return {.verdict = Verdict::impossible,
            .bound = "100 %",
            .formula = fmt::format("rate / dense peak: {:.3g} of {:.3g} TFLOP/s", rate / 1e12,
                                   peak_of(claim).count() / 1e12),
            .source = "arithmetic",
            .otherwise = "a rate of sparse products, of another format, or of several GPUs"};
  }
  if (claim.number() > most_published_mfu && near) {
    return {.verdict = Verdict::implausible,
            .bound = fmt::format("{:.1f} %", 100 * most_published_mfu),
            .formula = "rate / dense peak",
            .source = of_published_mfu,
            .otherwise = "it is the hardware's utilisation (HFU)"};
  }
  return {
      .verdict = claim.number() > bound && !near ? Verdict::impossible : Verdict::possible,
      .bound = fmt::format("{:.1f} %", 100 * bound),
      .formula =
          full ? "rate x 6/8 / peak: recomputed FLOPs are not the model's" : "rate / dense peak",
      .source = "Narayanan et al. 2021, arXiv 2104.04473; Chowdhery et al. 2022, arXiv 2204.02311",
      .otherwise = near ? "" : "it is the hardware's utilisation (HFU)"};
}

/// The share of a step that a technique speeds up, of usual runs.
struct Technique {
  std::string_view name;
  double share;   // that it touches, at most as usual
  double factor;  // of it; infinite: gone
  std::string_view source;
};
constexpr double gone = HUGE_VAL;
constexpr Technique techniques[] = {
    {"fp8", 0.7, 2, "llm-foundry's H100 rows: GEMMs are about 70 % of a step"},
    {"gradient compression", 0.2, gone, "exposed communication is 5 to 20 % of a step"},
    {"overlap", 0.3, gone, "exposed communication of published runs"},
};

/// Amdahl: 1 / (1 - g + g / f). A share that the claim states bounds it; a usual one makes it
/// implausible.
Judgement judge_speedup(const Claim& claim) {
  const auto stated = claim.given("share");
  double share = stated ? Claim::number_of(*stated) : -1, factor = claim.number_or("factor", gone);
  std::string_view source = "Amdahl 1967";
  if (const auto named = claim.given("technique")) {
    const std::string word = named->as<std::string>();
    const auto* found = std::ranges::find(techniques, word, &Technique::name);
    if (found == std::end(techniques)) {
      named->fail_expected("fp8, gradient compression or overlap; or state share and factor");
    }
    if (!stated) share = found->share;
    if (!claim.given("factor")) factor = found->factor;
    source = found->source;
  }
  if (share < 0) claim.needed("share");
  const double bound = 1 / (1 - share + (std::isfinite(factor) ? share / factor : 0));
  const double value = claim.number();
  const double needed = (1 - 1 / value) / (1 - (std::isfinite(factor) ? 1 / factor : 0));
  const bool above = value > bound * 1.005;
  return {.verdict = !above   ? Verdict::possible
                     : stated ? Verdict::impossible
                              : Verdict::implausible,
          .bound = fmt::format("{:.2f} x", bound),
          .formula = fmt::format("1 / (1 - g + g / f), g = {:g}", share),
          .source = std::string{source},
          .otherwise = !above ? "" : fmt::format("g = {:.2f}", needed)};
}

Judgement judge_bubble(const Claim& claim) {
  const double p = claim.number("stages"), m = claim.number("micro_batches");
  const double bound = (p - 1) / (claim.number_or("virtual_stages", 1) * m + p - 1);
  const double value = claim.number();
  const bool near = std::abs(value / bound - 1) < 0.1;
  return {
      .verdict = near ? Verdict::possible : Verdict::implausible,
      .bound = fmt::format("{:.1f} %", 100 * bound),
      .formula = "(p - 1) / (v m + p - 1)",
      .source = "Narayanan et al. 2021, arXiv 2104.04473",
      .otherwise =
          near ? "" : fmt::format("{:.0f} micro-batches", std::ceil((p - 1) * (1 / value - 1)))};
}

/// Bytes on a link of a ring: 2 (n-1)/n of the payload, for any n nearly the same.
Judgement judge_ring(const Claim& claim) {
  const auto share = [](double n) { return 2 * (n - 1) / n; };
  const double bound = share(claim.number("to")) / share(claim.number("from"));
  const bool near = std::abs(claim.number() / bound - 1) < 0.2;
  return {.verdict = near ? Verdict::possible : Verdict::implausible,
          .bound = fmt::format("{:.2f} x", bound),
          .formula = "2 (n-1)/n of the bytes for large messages; latency grows with n",
          .source = "Patarasuk & Yuan 2009",
          .otherwise = near ? "" : "small messages"};
}

/// Optimiser state stays; activations halve: A/2 of 16 N + A.
Judgement judge_memory_saving(const Claim& claim) {
  const double state = claim.number_or("bytes_per_parameter", 16);
  const auto stated = claim.given("activation_bytes_per_parameter");
  const double usual = state;  // activations as large as the state are many
  const double activations = stated ? Claim::number_of(*stated) : usual;
  const double bound = 0.5 * activations / (state + activations), value = claim.number();
  const Verdict above = value >= 0.5 || stated ? Verdict::impossible : Verdict::implausible;
  return {.verdict = value <= bound ? Verdict::possible : above,
          .bound = fmt::format("{:.0f} %", 100 * bound),
          .formula = "0.5 A / (16 N + A): 16 bit halve activations, not Adam's state",
          .source = "Rajbhandari et al. 2020, arXiv 1910.02054; TF32 is stored in 32 bits",
          .otherwise = value <= bound || value >= 0.5 ? ""
                                                      : fmt::format("A = {:.0f} N bytes or more",
                                                                    state * value / (0.5 - value))};
}

/// What a saving of cost needs: as many times the useful FLOPs.
Judgement judge_cost_saving(const Claim& claim) {
  const double factor = 1 / (1 - claim.number());
  const auto before = claim.given("mfu");
  Judgement judged{.verdict = Verdict::undecided,
                   .bound = fmt::format("{:.2f} x the MFU", factor),
                   .formula = "cost after / before = MFU before / after x price ratio",
                   .source = of_published_mfu,
                   .otherwise = "tokens/s per GPU before and after are stated"};
  if (!before) return judged;
  const double after = Claim::number_of(*before) * factor;
  judged.bound = fmt::format("an MFU of {:.0f} %", 100 * after);
  judged.verdict = after > 1                    ? Verdict::impossible
                   : after > most_published_mfu ? Verdict::implausible
                                                : Verdict::possible;
  if (judged.verdict == Verdict::possible) judged.otherwise.clear();
  return judged;
}

Judgement judge_checkpoint(const Claim& claim) {
  constexpr double bytes_per_parameter = 14, copy = 55e9;
  const double time =
      bytes_per_parameter * claim.number("parameters") / claim.number("gpus") / copy;
  const double bound = time / seconds(claim.needed("every").as<Time>());
  return {.verdict = claim.number() >= bound ? Verdict::possible : Verdict::impossible,
          .bound = fmt::format("{:.2g} %", 100 * bound),
          .formula = "14 bytes x parameters / GPUs / 55 GB/s, over the interval",
          .source = "PCIe Gen5 as measured; ByteRobust (arXiv 2509.16293): below 0.9 % a step",
          .otherwise =
              claim.number() >= bound ? "" : fmt::format("every {:.2g} s", time / claim.number())};
}

Judgement judge_failures(const Claim& claim) {
  const double device = seconds_long(claim.needed("device_mtbf"));
  const double bound = device / claim.number("devices");
  const double value = seconds_long(claim.value());
  return {.verdict = value <= 1.1 * bound ? Verdict::possible : Verdict::impossible,
          .bound = bound > seconds_per_day ? fmt::format("{:.3g} days", bound / seconds_per_day)
                                           : format(from_seconds(bound)),
          .formula = "mean time between failures of one / number",
          .source = "Llama 3 405B: 50,700 GPU-hours a failure (arXiv 2407.21783)",
          .otherwise = value <= 1.1 * bound ? "" : fmt::format("{:.0f} devices", device / value)};
}

/// Waiting for healthy nodes on 400 servers, replayed: 20 spare 13.9 %, 30 1.2 %, 40 none.
Judgement judge_spares(const Claim& claim) {
  const double value = claim.number();
  return {.verdict = value >= 0.075 ? Verdict::possible : Verdict::implausible,
          .bound = "7.5 % leave a job waiting for 1.2 % of its time, 5 % for 13.9 %",
          .formula = "faults of 345 days on 400 servers, replayed",
          .source = "StepFun, InfiniteHBD-Trace, commit 7aacdc8",
          .otherwise = value >= 0.075 ? "" : "repairs take hours, not 5.5 days on average"};
}

Judgement judge_error(const Claim& claim) {
  constexpr double best = 0.013;
  const double value = claim.number();
  return {.verdict = value >= 0.055 ? Verdict::possible : Verdict::undecided,
          .bound = "1.3 % median, 5.5 % p90",
          .formula = "the best published: replay of measured traces",
          .source = "straggler what-if analysis, OSDI 2025 (arXiv 2505.05713)",
          .otherwise = value < best ? "errors of systems are shown that no fit has seen"
                                    : "median or p90 is said, over which systems"};
}

}  // namespace

std::span<const ClaimRule> run_rules() {
  static const std::vector<ClaimRule> rules{
      {"gpus", {"data", "tensor", "pipeline", "context"}, judge_layout, "of a parallel layout"},
      {"training time",
       {"gpu", "gpus", "dtype", "parameters", "tokens"},
       judge_training_time,
       "of a number of tokens"},
      {"mfu", {"gpu", "dtype", "rate", "recomputation"}, judge_mfu, "from a rate of FLOPs"},
      {"speedup", {"technique", "share", "factor"}, judge_speedup, "of a step by a technique"},
      {"pipeline bubble",
       {"stages", "micro_batches", "virtual_stages"},
       judge_bubble,
       "share of a step"},
      {"ring time ratio", {"from", "to"}, judge_ring, "of a ring all-reduce on more GPUs"},
      {"memory saving",
       {"technique", "bytes_per_parameter", "activation_bytes_per_parameter"},
       judge_memory_saving,
       "of mixed precision"},
      {"cost saving", {"technique", "mfu"}, judge_cost_saving, "of a training by a technique"},
      {"checkpoint overhead", {"parameters", "gpus", "every"}, judge_checkpoint, "share of time"},
      {"time between failures", {"devices", "device_mtbf"}, judge_failures, "of a cluster"},
      {"spare share", {"nodes"}, judge_spares, "of nodes, that is enough"},
      {"prediction error", {}, judge_error, "of step times"}};
  return rules;
}

}  // namespace orrery::scenarios
