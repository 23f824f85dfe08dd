#include "hardware/prices/rental.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <tuple>

#include "hardware/entries.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

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

namespace {

constexpr const char* price_key = "price_per_gpu_hour";
constexpr const char* price_pointer = "/price_per_gpu_hour";

/// The offers, read once.
const std::vector<Offer>& all_offers() {
  static const std::vector<Offer> all = offers();
  return all;
}

int most_nodes(OfferScope scope) {
  if (scope == OfferScope::gpu) return 0;
  return scope == OfferScope::node ? 1 : Rental::unlimited_nodes;
}

bool names(const Offer& offer, std::string_view node) {
  return std::ranges::find(offer.nodes, node) != offer.nodes.end();
}

std::string source_of(const Offer& offer) {
  if (offer.source == unconfirmed_source) return offer.source;
  const bool dated = offer.source.ends_with(offer.date);
  return fmt::format("{} on demand, {}{}", offer.provider, dated ? "" : offer.date + ", ",
                     offer.source);
}

std::string written(Price price) {
  return fmt::format("${:g}/h", price.count());
}

int nodes_of(const Json& cluster) {
  const auto nodes = cluster.find("nodes");
  const bool counted = nodes != cluster.end() && nodes->is_number_integer();
  return counted ? nodes->get<int>() : 1;
}

constexpr int months_per_year = 12;
constexpr std::size_t month_digits = 7;  // of "2026-10"

/// Months since year 0 of "2026-10" or "2026-10-06"; nothing of any other text.
std::optional<int> month_of(std::string_view date) {
  constexpr std::size_t year_digits = 4;
  if (date.size() < month_digits || date[year_digits] != '-') return std::nullopt;
  if (date.size() > month_digits && date[month_digits] != '-') return std::nullopt;
  int year = 0, month = 0;
  std::from_chars(date.data(), date.data() + year_digits, year);
  const char* digits = date.data() + year_digits + 1;
  const auto [end, error] = std::from_chars(digits, date.data() + month_digits, month);
  const bool valid = error == std::errc{} && end == date.data() + month_digits && month >= 1 &&
                     month <= months_per_year;
  return valid ? std::optional{year * months_per_year + month - 1} : std::nullopt;
}

/// "rented one node at a time".
std::string why_piecewise(const Offer& offer) {
  return fmt::format("rented one {} at a time",
                     offer.scope == OfferScope::gpu ? "GPU or superchip" : "node");
}

}  // namespace

std::optional<ClusterPrice> price_of(const Cluster& cluster) {
  if (!cluster.price_per_gpu_hour) return std::nullopt;
  ClusterPrice price{*cluster.price_per_gpu_hour, cluster.price_source, std::nullopt};
  const auto offer = std::ranges::find_if(all_offers(), [&](const Offer& each) {
    return price.per_gpu_hour == each.on_demand && price.source == source_of(each);
  });
  if (offer == all_offers().end()) return price;
  const bool covers = cluster.nodes <= most_nodes(offer->scope);
  const std::optional<int> months = months_before_newest(offer->date);
  price.listed = ListedPrice{.provider = offer->provider,
                             .date = offer->date,
                             .why_indicative = covers ? "" : why_piecewise(*offer),
                             .outdated = months && *months > outdated_after_months};
  return price;
}

std::optional<int> months_before_newest(std::string_view date) {
  static const int newest = month_of(newest_offer_month()).value();
  const std::optional<int> month = month_of(date);
  if (month) return std::max(0, newest - *month);
  const int year = year_of(date);
  if (year == 0) return std::nullopt;
  constexpr int december = 11;
  return std::max(0, newest - (year * months_per_year + december));
}

const std::string& newest_offer_month() {
  static const std::string newest = [] {
    std::string month;
    for (const Offer& each : all_offers()) {
      if (month_of(each.date)) month = std::max(month, each.date.substr(0, month_digits));
    }
    return month;
  }();
  return newest;
}

std::optional<Rental> rental_of(std::string_view node, int nodes) {
  const Offer* best = nullptr;
  const auto rank = [&](const Offer& offer) {
    const bool covers = nodes <= most_nodes(offer.scope);
    return std::tuple{covers ? 0 : 1, covers ? 0 : -static_cast<int>(offer.scope),
                      -year_of(offer.date), offer.on_demand.count()};
  };
  for (const Offer& each : all_offers()) {
    if (names(each, node) && (best == nullptr || rank(each) < rank(*best))) best = &each;
  }
  if (best == nullptr) return std::nullopt;
  return Rental{.node = std::string{node},
                .price = best->on_demand,
                .source = source_of(*best),
                .least_nodes = 1,
                .most_nodes = most_nodes(best->scope),
                .scope = best->scope};
}

std::vector<Rental> rentals() {
  std::vector<Rental> found;
  for (const std::string& node : entry_names(EntryKind::node)) {
    const auto one = rental_of(node, 1);
    if (!one) continue;
    found.push_back(*one);
    const auto several = rental_of(node, 2);
    if (!several->covers(2) || several->source == one->source) continue;
    found.back().most_nodes = 1;
    found.push_back(*several);
    found.back().least_nodes = 2;
  }
  return found;
}

std::string why_not_rented(const Rental& rental) {
  return fmt::format("rented one {} at a time: {} ({})",
                     rental.scope == OfferScope::gpu ? "GPU or superchip" : "node", rental.source,
                     written(rental.price));
}

void put_listed_price(Json& cluster, std::string_view node, Json& assumptions) {
  if (cluster.contains(price_key) && !cluster[price_key].is_null()) return;
  const int nodes = nodes_of(cluster);
  const auto rental = rental_of(node, nodes);
  if (!rental) return;
  cluster[price_key] = written(rental->price);
  cluster["sources"][price_pointer] = rental->source;
  if (rental->covers(nodes)) return;
  assumptions.push_back(fmt::format("{}: {}; no price of {} is listed", price_key,
                                    why_not_rented(*rental),
                                    nodes == 1 ? "a whole node" : "several together"));
}

void drop_listed_price(Json& cluster) {
  if (!cluster.is_object() || !cluster.contains(price_key) || !cluster.contains("node")) return;
  const Json& node = cluster["node"];
  if (!node.is_object() || !node.contains("name") || !node["name"].is_string()) return;
  const auto rental = rental_of(node["name"].get<std::string>(), nodes_of(cluster));
  const bool listed = rental && cluster[price_key] == written(rental->price) &&
                      hardware::source_of(cluster, price_pointer) == rental->source;
  if (!listed) return;
  cluster.erase(price_key);
  cluster["sources"].erase(price_pointer);
  const auto assumptions = cluster.find("assumptions");
  if (assumptions == cluster.end() || !assumptions->is_array()) return;
  Json::array_t& sentences = assumptions->get_ref<Json::array_t&>();
  std::erase_if(sentences, [](const Json& each) {
    return each.is_string() && each.get_ref<const std::string&>().starts_with(price_key);
  });
}

void set_nodes(Cluster& cluster, int nodes) {
  if (nodes == cluster.nodes) return;
  const auto before = rental_of(cluster.node.name, cluster.nodes);
  const bool listed = before && cluster.price_per_gpu_hour == before->price &&
                      cluster.price_source == before->source;
  cluster.nodes = nodes;
  if (!listed) return;
  const auto now = rental_of(cluster.node.name, nodes);
  cluster.price_per_gpu_hour = now->price;
  cluster.price_source = now->source;
}

}  // namespace orrery::hardware
