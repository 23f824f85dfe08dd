// Claims about links, GPUs, memory and networks: data sheets and arithmetic.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "scenarios/claims/claims.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* data_sheets = "catalogue: orrery show gpus";

hardware::Gpu gpu_of(const Claim& claim, std::string_view key) {
  const Node named = claim.needed(key);
  try {
    return hardware::named_gpu(named.as<std::string>());
  } catch (const InputError& error) {
    named.fail(error.what());
  }
}

hardware::Cluster node_of(const Claim& claim) {
  const Node named = claim.needed("node");
  try {
    return hardware::named_cluster(named.as<std::string>());
  } catch (const InputError& error) {
    named.fail(error.what());
  }
}

std::optional<hardware::DType> dtype_of(const Claim& claim) {
  const auto named = claim.given("dtype");
  if (!named) return std::nullopt;
  const auto type = hardware::dtype_named(named->as<std::string>());
  if (!type) named->fail_expected("a format such as bf16 or fp8");
  return type;
}

/// What measurements may exceed a rate by: rounding of published figures.
constexpr double rounding = 1.005;

Judgement at_most(double value, double bound, Judgement judged) {
  judged.verdict = value <= bound * rounding ? Verdict::possible : Verdict::impossible;
  if (judged.verdict == Verdict::possible) judged.otherwise.clear();
  return judged;
}

/// Bytes over links: line rate / 8, times links.
Judgement judge_link(const Claim& claim) {
  const auto rate = claim.needed("link").as<Bandwidth>();
  const double links = claim.number_or("links", 1);
  const auto value = claim.value<Bandwidth>();
  const Bandwidth bound = rate * links;
  return at_most(value.count(), bound.count(),
                 {.bound = format(bound) + " in one direction",
                  .formula = "line rate in bits / 8 x links",
                  .source = "arithmetic",
                  .otherwise = fmt::format("the number is in Gb/s, or {:.0f} such links are used",
                                           std::ceil(value.count() / rate.count()))});
}

/// Bus bandwidth of a collective inside a node. A ring, or any other way without a switch that
/// adds, takes each GPU's link in one direction; a switch that reduces needs 1/(2(n-1)/n) of it.
Judgement judge_bus(const Claim& claim) {
  const hardware::NodeType node = node_of(claim).node;
  const double n = node.gpus;
  const double gain = node.switch_reduces ? 2 * (n - 1) / n : 1;
  const Bandwidth bound = node.scale_up_bandwidth * gain;
  return at_most(
      claim.value<Bandwidth>().count(), bound.count(),
      {.bound = format(bound),
       .formula = node.switch_reduces ? "link rate in one direction x 2 (n-1)/n, as the switch adds"
                                      : "link rate of a GPU in one direction",
       .source = "catalogue: orrery show nodes",
       .otherwise =
           fmt::format("{} of bus bandwidth: data sheets add both directions", format(bound))});
}

Judgement judge_memory_rate(const Claim& claim) {
  const hardware::Gpu gpu = gpu_of(claim, "gpu");
  return at_most(claim.value<Bandwidth>().count(), gpu.memory_bandwidth.count(),
                 {.bound = format(gpu.memory_bandwidth),
                  .formula = "data sheet",
                  .source = data_sheets,
                  .otherwise = "measured rates are 85 to 92 % of it"});
}

/// Data sheets of one GPU differ by as much (B200: 9 and 10 PFLOP/s of dense FP4).
constexpr double variants = 1.12;

Judgement judge_peak(const Claim& claim) {
  const hardware::Gpu gpu = gpu_of(claim, "gpu");
  const double value = claim.value<FlopRate>().count();
  if (const auto type = dtype_of(claim)) {
    const auto peak = gpu.peak(*type);
    if (!peak)
      return {.verdict = Verdict::impossible,
              .bound = "no such format",
              .formula = "data sheet",
              .source = data_sheets,
              .otherwise = "another format"};
    return at_most(value, peak->count(),
                   {.bound = format(*peak) + " dense",
                    .formula = "data sheet, without sparsity",
                    .source = data_sheets,
                    .otherwise = "half of the weights are zeros in every group of four"});
  }
  double least = HUGE_VAL, most = 0;
  for (const auto& peak : gpu.dense_peak) {
    if (!peak) continue;
    least = std::min(least, peak->count());
    most = std::max(most, peak->count());
  }
  const bool sparse = value <= 2 * most * variants;
  return {.verdict = value <= least ? Verdict::possible
                     : sparse       ? Verdict::undecided
                                    : Verdict::impossible,
          .bound = fmt::format("{} to {} dense, by format", format(FlopRate{least}),
                               format(FlopRate{most})),
          .formula = "data sheet; twice with sparsity",
          .source = data_sheets,
          .otherwise = "the format, and whether zeros are skipped, must be named"};
}

/// Like for like in one format; without one, over all formats that both or either have.
Judgement judge_peak_ratio(const Claim& claim) {
  const hardware::Gpu gpu = gpu_of(claim, "gpu"), other = gpu_of(claim, "of");
  const double value = claim.number();
  if (const auto type = dtype_of(claim)) {
    const auto mine = gpu.peak(*type), theirs = other.peak(*type);
    if (!mine || !theirs)
      return {.bound = "no such format on both",
              .formula = "data sheet",
              .source = data_sheets,
              .otherwise = "a format that both have"};
    const double bound = ratio(*mine, *theirs);
    return at_most(value, bound,
                   {.bound = fmt::format("{:.2f} x", bound),
                    .formula = fmt::format("{} / {}", format(*mine), format(*theirs)),
                    .source = data_sheets,
                    .otherwise = fmt::format("{:.2f} x is claimed", bound)});
  }
  double best = ratio(gpu.memory_bandwidth, other.memory_bandwidth);
  const double theirs =
      other.peak(hardware::DType::bf16).value_or(*other.peak(hardware::DType::fp16)).count();
  for (const auto type : {hardware::DType::bf16, hardware::DType::fp8}) {
    if (const auto peak = gpu.peak(type)) best = std::max(best, peak->count() / theirs);
  }
  return {.verdict = value <= best ? Verdict::possible : Verdict::implausible,
          .bound = fmt::format("{:.2f} x", best),
          .formula = "the largest of peak and memory ratios, FP8 against 16 bits",
          .source = data_sheets,
          .otherwise = "model, format and size of the NVLink domain differ, too"};
}

Judgement judge_line_ratio(const Claim& claim) {
  const double bound =
      ratio(claim.needed("link").as<Bandwidth>(), claim.needed("of").as<Bandwidth>());
  const double value = claim.number();
  const bool equal = std::abs(value / bound - 1) < 0.1;
  return {.verdict = equal ? Verdict::possible : Verdict::implausible,
          .bound = fmt::format("{:.2f} x", bound),
          .formula = "ratio of line rates",
          .source = "arithmetic; Llama 3 405B ran on RoCE at 38 to 43 % MFU (arXiv 2407.21783)",
          .otherwise = "it is of one installation: congestion control and tuning differ"};
}

/// Parameters that fit into the memory of some GPUs at so many bytes for each.
Judgement judge_parameters(const Claim& claim) {
  const hardware::Gpu gpu = gpu_of(claim, "gpu");
  const double gpus = claim.number_or("gpus", 1), bytes = claim.number("bytes_per_parameter");
  const double bound = gpus * static_cast<double>(gpu.memory.count()) / bytes;
  return at_most(claim.number(), bound,
                 {.bound = fmt::format("{:.3g}B parameters", bound / 1e9),
                  .formula = "GPUs x memory / bytes of a parameter, without activations",
                  .source = data_sheets,
                  .otherwise = fmt::format("{:.0f} such GPUs, or {:.2g} bytes a parameter",
                                           std::ceil(claim.number() * gpus / bound),
                                           bytes * bound / claim.number())});
}

/// Tokens a second of one sequence: every weight is read once for each.
Judgement judge_decode(const Claim& claim) {
  const hardware::Gpu gpu = gpu_of(claim, "gpu");
  const double batch = claim.number_or("batch", 1), gpus = claim.number_or("gpus", 1);
  const double bound = batch * gpus * gpu.memory_bandwidth.count() /
                       (claim.number("parameters") * claim.number("bytes_per_parameter"));
  return at_most(
      claim.number(), bound,
      {.bound = fmt::format("{:.3g} tokens/s", bound),
       .formula = "memory bandwidth / (parameters x bytes) x batch",
       .source = data_sheets,
       .otherwise = fmt::format("a batch of {:.0f}", std::ceil(batch * claim.number() / bound))});
}

/// Switches of k ports for n endpoints.
///   two tiers 3 n / k up to k^2 / 2 endpoints;  three tiers 5 n / k
Judgement judge_switches(const Claim& claim) {
  const double n = claim.number("endpoints"), k = claim.number("ports"), value = claim.number();
  const bool two_tiers = n <= k * k / 2;
  const double full = std::ceil((two_tiers ? 3 : 5) * n / k), planes = std::ceil(3 * n / k);
  return {.verdict = value >= full     ? Verdict::possible
                     : value >= planes ? Verdict::undecided
                                       : Verdict::impossible,
          .bound = fmt::format("{:.0f} switches for any to any", full),
          .formula = two_tiers ? "two tiers: 3 n / k" : "three tiers: 5 n / k beyond k^2 / 2",
          .source = "fat tree: Leiserson 1985; Al-Fares et al. 2008",
          .otherwise = fmt::format("{:.0f} separate planes of {:.0f} endpoints",
                                   std::ceil(n / (k * k / 2)), k * k / 2)};
}

}  // namespace

std::span<const ClaimRule> hardware_rules() {
  static const std::vector<ClaimRule> rules{
      {"link bandwidth", {"link", "links"}, judge_link, "bytes per second over links"},
      {"bus bandwidth", {"node", "operation"}, judge_bus, "nccl-tests' busbw inside a node"},
      {"memory bandwidth", {"gpu"}, judge_memory_rate, "of one GPU"},
      {"peak", {"gpu", "dtype"}, judge_peak, "FLOP/s of one GPU"},
      {"peak ratio", {"gpu", "of", "dtype"}, judge_peak_ratio, "one GPU over another"},
      {"line ratio", {"link", "of"}, judge_line_ratio, "one network's rate over another's"},
      {"parameters",
       {"gpu", "gpus", "bytes_per_parameter"},
       judge_parameters,
       "that GPUs hold or train"},
      {"decode rate",
       {"gpu", "gpus", "parameters", "bytes_per_parameter", "batch"},
       judge_decode,
       "tokens a second that a model writes"},
      {"switches", {"endpoints", "ports"}, judge_switches, "of a fat tree"}};
  return rules;
}

}  // namespace orrery::scenarios
