#pragma once
// What so many nodes of a type rent for: one rule, by which every question is priced. Leaves out
// negotiation, reservations, spot, storage, egress and what an owner pays.
//   of all offers that rent as many nodes together (Offer::scope), those of the latest year; of
//   them the lowest price on demand

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster.hpp"
#include "hardware/offer.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// A node type at one price for each of its GPUs and hour, on demand.
struct Rental {
  std::string node;  // catalogue name
  Price price{};
  std::string source;                // who, when, by way of whom
  int least_nodes = 1;               // it is the price of that many nodes ...
  int most_nodes = unlimited_nodes;  // ... to that many
  OfferScope scope = OfferScope::cluster;

  static constexpr int unlimited_nodes = std::numeric_limits<int>::max();
  bool covers(int nodes) const { return nodes >= least_nodes && nodes <= most_nodes; }
};

/// The rental of `nodes` nodes by the rule above. Where no offer rents as many together: of the
/// offers of the widest scope the one that the rule takes; it does not cover `nodes`. Nothing where
/// no offer names the type.
std::optional<Rental> rental_of(std::string_view node, int nodes);

/// Every node type that has an offer, by name; one rented singly at another price than in clusters
/// comes twice, and one that is never rented whole covers nothing.
std::vector<Rental> rentals();

/// Why a rental is not of `nodes` nodes: "RunPod on demand, ... rents nodes one by one".
std::string why_not_rented(const Rental& rental);

/// Gives an expanded cluster without a price the one that its nodes rent for. One that is of fewer
/// nodes than these is taken all the same, and `assumptions` says so.
void put_listed_price(Json& cluster, std::string_view node, Json& assumptions);
/// Takes away again what put_listed_price gave, if it is unchanged.
void drop_listed_price(Json& cluster);
/// Another number of nodes, at the price of as many where theirs was a listed one.
void set_nodes(Cluster& cluster, int nodes);

/// The last year that a text names, 0 without one: 2026 of "Lambda on demand, 2025-2026".
int year_of(std::string_view text);

}  // namespace orrery::hardware
