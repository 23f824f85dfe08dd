// Claims about dollars, energy and carbon: dated offers and the cost of owning.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "hardware/catalogue.hpp"
#include "hardware/prices/offer.hpp"
#include "scenarios/claims/claims.hpp"
#include "scenarios/whole_run/run_inputs.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Discounts of offers against their own price on demand.
/// Source  rows without an offer of the catalogue: third-party price audit of 2026-10-06
std::vector<double> discounts(std::optional<Price> hardware::Offer::*term) {
  std::vector<double> found;
  for (const hardware::Offer& each : hardware::offers()) {
    if (each.*term) found.push_back(1 - ratio(*(each.*term), each.on_demand));
  }
  std::ranges::sort(found);
  return found;
}

/// A saving that is claimed of a kind of offer in general holds if every offer has it.
Judgement judge_discount(const Claim& claim, const std::vector<double>& found) {
  const auto [low, high] = claim.range();
  const auto inside = std::ranges::count_if(
      found, [&](double each) { return each >= low - 0.005 && each <= high + 0.005; });
  const bool all = inside == std::ssize(found);
  return {.verdict = found.empty() || (inside > 0 && !all) ? Verdict::undecided
                     : all                                 ? Verdict::possible
                                                           : Verdict::implausible,
          .bound = found.empty()
                       ? "no offer"
                       : fmt::format("{:.0f} to {:.0f} %, {} of {} offers inside",
                                     100 * found.front(), 100 * found.back(), inside, found.size()),
          .formula = "1 - price / price on demand, of dated offers; then divide by goodput",
          .source = "hardware/catalogue/offers.json",
          .otherwise = all ? "" : "the offer is named"};
}

Judgement judge_spot(const Claim& claim) {
  return judge_discount(claim, discounts(&hardware::Offer::spot));
}

Judgement judge_reserved(const Claim& claim) {
  const double years = claim.number_or("years", 3);
  return judge_discount(
      claim, discounts(years < 2 ? &hardware::Offer::reserved_1y : &hardware::Offer::reserved_3y));
}

/// The cheapest dollars for a FLOP at the dense peak of 16 bits, over all offers, any term.
double cheapest_per_flop() {
  double least = HUGE_VAL;
  for (const hardware::Offer& offer : hardware::offers()) {
    Price price = offer.on_demand;
    for (const auto& other : {offer.reserved_1y, offer.reserved_3y, offer.spot}) {
      if (other) price = std::min(price, *other);
    }
    for (const std::string& node : offer.nodes) {
      const hardware::Gpu gpu = hardware::named_cluster(node).gpu();
      const auto peak = gpu.peak(hardware::DType::bf16);
      if (peak) least = std::min(least, price.count() / 3600 / peak->count());
    }
  }
  return least;
}

Judgement judge_training_cost(const Claim& claim) {
  constexpr double most_published_mfu = 0.561;
  const double flops = 6 * claim.number("parameters") * claim.number("tokens");
  const double bound = flops * cheapest_per_flop();
  const double value = claim.value<Money>().count();
  return {.verdict = value < bound                        ? Verdict::impossible
                     : value < bound / most_published_mfu ? Verdict::implausible
                                                          : Verdict::possible,
          .bound = format(Money{bound}) + " at the peak of the cheapest offer",
          .formula = "6 x parameters x tokens x $ / FLOP",
          .source = "hardware/catalogue/offers.json, any term; highest published MFU 0.561",
          .otherwise = value < bound ? fmt::format("{:.3g}B tokens",
                                                   claim.number("tokens") * value / bound / 1e9)
                                     : ""};
}

/// Energy over all costs of owning: of a hall of one's own, and of colocation at $250 a kW-month.
Judgement judge_energy_share(const Claim& claim) {
  const OwnedGpu own;
  OwnedGpu rack = own;
  rack.colocation = 250;
  const auto share = [](const OwnedGpu& gpu) {
    OwnedGpu free = gpu;
    free.power_price = 0;
    free.colocation = gpu.colocation > 0 ? 1e-12 : 0;
    return 1 - ratio(hourly_price(free), hourly_price(gpu));
  };
  const double usual = share(own), most = share(rack), value = claim.number();
  return {.verdict = value <= most ? Verdict::possible : Verdict::implausible,
          .bound = fmt::format("{:.0f} to {:.0f} %", 100 * usual, 100 * most),
          .formula = "kW x load x PUE x $/kWh over annuity, energy, staff and maintenance",
          .source = "Epoch AI's amortised shares: energy 9 %; H100 cost sheet of 2024-08",
          .otherwise = value <= most ? "" : "hardware costs a tenth, or power ten times as much"};
}

Judgement judge_pue(const Claim& claim) {
  const double value = claim.number();
  return {.verdict = value < 1 ? Verdict::impossible : Verdict::possible,
          .bound = "1.00 or more; surveys 1.54 to 1.58, one fleet 1.10",
          .formula = "energy of the site / energy of its machines",
          .source = "Uptime Institute survey 2024, 2025 (secondary)",
          .otherwise = value < 1 ? "heat that is sold is counted apart" : ""};
}

/// hours x board power x intensity, from half of the board's power and 0.02 kg/kWh to the whole
/// server, PUE 1.6 and coal.
Judgement judge_co2(const Claim& claim) {
  const hardware::Gpu gpu = hardware::named_gpu(claim.word("gpu"));
  const double kwh = claim.number("gpu_hours") * gpu.board_power.count() / 1000;
  const double low = kwh * 0.5 * 0.02 / 1000, high = kwh * 1.8 * 1.6 * 1.0 / 1000;
  const double value = claim.number();
  const double usual = kwh * 0.41 / 1000;
  return {.verdict = value >= low && value <= high ? Verdict::possible : Verdict::impossible,
          .bound = fmt::format("{:.3g} to {:.3g} t; {:.4g} t by board power and 0.41 kg/kWh", low,
                               high, usual),
          .formula = "GPU-hours x power x intensity",
          .source = "model cards of Llama 2 and 3.1 imply 0.41 to 0.42 kg/kWh",
          .otherwise = ""};
}

}  // namespace

std::span<const ClaimRule> money_rules() {
  static const std::vector<ClaimRule> rules{
      {"spot saving", {}, judge_spot, "against on demand"},
      {"reserved saving", {"years"}, judge_reserved, "against on demand"},
      {"training cost", {"parameters", "tokens"}, judge_training_cost, "in dollars"},
      {"energy share of cost", {}, judge_energy_share, "of owning"},
      {"pue", {"cooling"}, judge_pue, "of a hall"},
      {"co2", {"gpu", "gpu_hours"}, judge_co2, "tonnes of a training"}};
  return rules;
}

}  // namespace orrery::scenarios
