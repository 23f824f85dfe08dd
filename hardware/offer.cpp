#include "hardware/offer.hpp"

#include "hardware/reading.hpp"
#include "hardware/shelf.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

std::optional<Price> price_if_any(const Node& offer, std::string_view key) {
  const auto price = offer.find(key);
  return price ? std::optional{positive<Price>(*price)} : std::nullopt;
}

}  // namespace

Offer read_offer(const Node& node) {
  node.only({"name", "provider", "node", "date", "on_demand", "reserved_1y", "reserved_3y", "spot",
             "notes", "sources"});
  Offer offer{.name = node["name"].as<std::string>(),
              .provider = node["provider"].as<std::string>(),
              .node = node["node"].as<std::string>(),
              .date = node["date"].as<std::string>(),
              .source = source_of(node.json(), "/on_demand"),
              .on_demand = positive<Price>(node["on_demand"]),
              .reserved_1y = price_if_any(node, "reserved_1y"),
              .reserved_3y = price_if_any(node, "reserved_3y"),
              .spot = price_if_any(node, "spot")};
  if (!find_entry(Shelf::node, offer.node)) {
    node["node"].fail(unknown_entry(Shelf::node, offer.node));
  }
  return offer;
}

std::vector<Offer> offers() {
  std::vector<Offer> all;
  for (const std::string& name : entry_names(Shelf::offer)) {
    const std::string file = "hardware/catalogue/offers/" + name + ".json";
    all.push_back(read_offer(Node{*find_entry(Shelf::offer, name), file, ""}));
  }
  return all;
}

}  // namespace orrery::hardware
