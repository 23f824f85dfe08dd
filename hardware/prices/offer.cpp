#include "hardware/prices/offer.hpp"

#include "hardware/entries.hpp"
#include "hardware/reading.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

std::vector<std::string> names_of(const Node& nodes) {
  std::vector<std::string> names;
  const auto add = [&](const Node& each) {
    names.push_back(each.as<std::string>());
    if (!find_entry(EntryKind::node, names.back()))
      each.fail(unknown_entry(EntryKind::node, names.back()));
  };
  if (nodes.is_string()) {
    add(nodes);
  } else {
    for (const Node& each : nodes.elements()) add(each);
  }
  return names;
}

}  // namespace

std::string_view name(OfferScope scope) {
  return word_of(offer_scope_words, scope);
}

Offer read_offer(const Node& node) {
  node.only({"name", "provider", "node", "scope", "date", "on_demand", "reserved_1y", "reserved_3y",
             "spot", "notes", "sources"});
  return {.name = node["name"].as<std::string>(),
          .provider = node["provider"].as<std::string>(),
          .nodes = names_of(node["node"]),
          .scope = node["scope"].word(offer_scope_words),
          .date = node["date"].as<std::string>(),
          .source = source_of(node.json(), "/on_demand"),
          .on_demand = positive<Price>(node["on_demand"]),
          .reserved_1y = positive_if_any<Price>(node, "reserved_1y"),
          .reserved_3y = positive_if_any<Price>(node, "reserved_3y"),
          .spot = positive_if_any<Price>(node, "spot")};
}

std::vector<Offer> offers() {
  std::vector<Offer> all;
  for (const std::string& name : entry_names(EntryKind::offer)) {
    all.push_back(read_offer(entry_node(EntryKind::offer, name)));
  }
  return all;
}

}  // namespace orrery::hardware
