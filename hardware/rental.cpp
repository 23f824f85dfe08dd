#include "scenarios/search/rental.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <tuple>

#include "hardware/catalogue.hpp"
#include "hardware/offer.hpp"

namespace orrery::scenarios {

int year_of(std::string_view text) {
  constexpr std::size_t digits = 4;
  int year = 0;
  const auto digit = [&](std::size_t i) {
    return i < text.size() && std::isdigit(static_cast<unsigned char>(text[i])) != 0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!digit(i)) continue;
    std::size_t end = i;
    while (digit(end)) ++end;
    if (end - i == digits && text.substr(i, 2) == "20") {
      year = 2000 + (text[i + 2] - '0') * 10 + (text[i + 3] - '0');
    }
    i = end;
  }
  return year;
}

std::vector<Rental> rentals() {
  struct Dated {
    Rental rental;
    int year = 0;
  };
  std::vector<Dated> all;
  for (const std::string& name : hardware::Catalogue::nodes()) {
    const hardware::Cluster cluster = hardware::named_cluster(name);
    if (!cluster.price_per_gpu_hour) continue;
    all.push_back(
        {{name, *cluster.price_per_gpu_hour, cluster.price_source}, year_of(cluster.price_source)});
  }
  for (const hardware::Offer& offer : hardware::offers()) {
    all.push_back({{offer.node, offer.on_demand,
                    fmt::format("{} on demand, {}, {}", offer.provider, offer.date, offer.source)},
                   year_of(offer.date)});
  }
  std::stable_sort(all.begin(), all.end(), [](const Dated& a, const Dated& b) {
    return std::tie(a.rental.node, b.year, a.rental.price) <
           std::tie(b.rental.node, a.year, b.rental.price);
  });
  std::vector<Rental> found;
  for (Dated& each : all) {
    if (found.empty() || found.back().node != each.rental.node) {
      found.push_back(std::move(each.rental));
    }
  }
  return found;
}

}  // namespace orrery::scenarios
