#pragma once
// What clusters cost to rent: list prices per GPU-hour with their date, before any negotiation.
// Leaves out egress, storage and support; owning is the purchase price of nodes and switches.

#include <optional>
#include <string>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// One way to rent a node of the catalogue. Prices are of one GPU with its share of the host.
struct Offer {
  std::string name;      // "aws-p5"
  std::string provider;  // "AWS"
  std::string node;      // catalogue name: "p5"
  std::string date;      // of the price list, "2026-09"
  std::string source;
  Price on_demand{};
  std::optional<Price> reserved_1y;
  std::optional<Price> reserved_3y;
  std::optional<Price> spot;
};

/// All offers of the catalogue, by name.
std::vector<Offer> offers();

/// One offer. Errors  an unknown key, a price without its unit, a node that is not there
Offer read_offer(const Node& offer);

}  // namespace orrery::hardware
