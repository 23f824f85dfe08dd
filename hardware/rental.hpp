#pragma once
// What each node type of the catalogue rents for, with the date and source of the price. Leaves
// out negotiation, reservations, spot, storage, egress and what an owner pays.

#include <string>
#include <vector>

#include "sim/quantity.hpp"

namespace orrery::scenarios {

/// A node type at one price for each of its GPUs and hour, on demand.
struct Rental {
  std::string node;  // catalogue name
  Price price{};
  std::string source;  // who, when, by way of whom
};

/// The price of a node type: of its own entry and all offers of it, the lowest among those of the
/// latest year. A price without a year is older than any.
std::vector<Rental> rentals();

/// The last year that a text names, 0 without one: 2026 of "Lambda on demand, 2025-2026".
int year_of(std::string_view text);

}  // namespace orrery::scenarios
