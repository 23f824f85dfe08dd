#include "scenarios/scenario/run_price.hpp"

#include <fmt/format.h>

#include <cmath>

#include "hardware/reading.hpp"

namespace orrery::scenarios {

Price hourly_price(const OwnedGpu& owned) {
  constexpr double hours_per_year = 8766;
  const double capital = owned.capex.count(), grown = std::pow(1 + owned.wacc, owned.life_years);
  const double annuity =
      owned.wacc > 0 ? (capital - owned.residual * capital / grown) * owned.wacc / (1 - 1 / grown)
                     : capital * (1 - owned.residual) / owned.life_years;
  const double energy = owned.colocation > 0 ? owned.kilowatts * owned.colocation * 12
                                             : owned.kilowatts * owned.load * owned.pue *
                                                   owned.power_price * hours_per_year;
  const double year =
      annuity + energy + owned.staff.count() + owned.maintenance * owned.capex.count();
  return Price{year / hours_per_year / owned.used};
}

/// A number within bounds, both included.
double number_or(const Node& node, std::string_view key, double otherwise, double low,
                 double high) {
  const auto member = node.find(key);
  if (!member) return otherwise;
  const double value = member->as<double>();
  if (!(value >= low && value <= high)) {
    member->fail_expected(fmt::format("a number from {:g} to {:g}", low, high));
  }
  return value;
}

double pue_or(const Node& energy, double otherwise) {
  return number_or(energy, "pue", otherwise, 1, 5);
}

OwnedGpu read_owned(const Node& node, double pue) {
  node.only({"capex", "life", "residual_value", "wacc", "kilowatts", "load", "pue", "power_price",
             "colocation", "staff", "maintenance", "used"});
  OwnedGpu own;
  own.capex = node.value_or("capex", own.capex);
  own.life_years = number_or(node, "life", own.life_years, 0.25, 50);
  own.residual = number_or(node, "residual_value", own.residual, 0, 1);
  own.wacc = number_or(node, "wacc", own.wacc, 0, 1);
  own.kilowatts = number_or(node, "kilowatts", own.kilowatts, 0.01, 100);
  own.load = number_or(node, "load", own.load, 0, 1);
  own.pue = pue_or(node, pue);
  own.power_price = number_or(node, "power_price", own.power_price, 0, 10);
  own.colocation = number_or(node, "colocation", 0, 0, 10'000);
  own.staff = node.value_or("staff", own.staff);
  own.maintenance = number_or(node, "maintenance", own.maintenance, 0, 1);
  own.used = number_or(node, "used", own.used, 0.01, 1);
  return own;
}

void take_run_price(const Node& run, hardware::Cluster& cluster) {
  const auto take = [&](Price price, const char* source) {
    cluster.price_per_gpu_hour = price;
    cluster.price_source = source;
    std::erase_if(cluster.assumptions,
                  [](const std::string& each) { return each.starts_with("price_per_gpu_hour"); });
  };
  if (const auto pools = run.find("pools")) {
    double dollars = 0, nodes = 0;
    for (const Node& each : pools->elements()) {
      const auto price = each.find("price");
      if (!price) return;  // read_run refuses prices of some
      const auto count = static_cast<double>(each["nodes"].integer(1, most_count));
      dollars += count * hardware::positive<Price>(*price).count();
      nodes += count;
    }
    if (nodes > 0) take(Price{dollars / nodes}, "the mean over /run/pools");
  } else if (const auto price = run.find("price")) {
    take(hardware::positive<Price>(*price), "/run/price");
  } else if (const auto own = run.find("own")) {
    const auto energy = run.find("energy");
    const double usual = OwnedGpu{}.pue;
    take(hourly_price(read_owned(*own, energy ? pue_or(*energy, usual) : usual)),
         "owned (/run/own)");
  }
}

}  // namespace orrery::scenarios
