#pragma once
// What clusters cost to rent: list prices per GPU-hour with their date, before any negotiation.
// Leaves out egress, storage and support; owning is the purchase price of nodes and switches.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery::hardware {

/// The largest unit that can be rented together at an offer's price.
enum class OfferScope : std::uint8_t {
  gpu,      // one GPU or superchip, not a whole node of the type
  node,     // single machines, with no training network between them
  cluster,  // several nodes on one such network
};
inline constexpr Words<OfferScope, 3> offer_scope_words{
    {{OfferScope::gpu, "gpu"}, {OfferScope::node, "node"}, {OfferScope::cluster, "cluster"}}};
std::string_view name(OfferScope scope);

/// One way to rent a node of the catalogue. Prices are of one GPU with its share of the host.
struct Offer {
  std::string name;                // "aws-p5"
  std::string provider;            // "AWS"
  std::vector<std::string> nodes;  // catalogue names of what is rented or is like it: "p5"
  OfferScope scope = OfferScope::node;
  std::string date;  // of the price list, "2026-09"
  std::string source;
  Price on_demand{};
  std::optional<Price> reserved_1y;
  std::optional<Price> reserved_3y;
  std::optional<Price> spot;
};

/// All offers of the catalogue, by name.
std::vector<Offer> offers();

/// One offer. Errors  an unknown key, a price without its unit, an unknown node
Offer read_offer(const Node& offer);

}  // namespace orrery::hardware
