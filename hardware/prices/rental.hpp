#pragma once
// Rental price of a number of nodes of one type, by one rule that all questions use. Leaves out
// negotiation, reservations, spot, storage, egress and what an owner pays.
//   of all offers that rent as many nodes together (Offer::scope), those of the latest year; of
//   them the lowest price on demand

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "hardware/prices/offer.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

/// A node type at one on-demand price per GPU-hour.
struct Rental {
  std::string node;  // catalogue name
  Price price{};
  std::string source;                // provider, date, publication
  int least_nodes = 1;               // the price holds from this many nodes ...
  int most_nodes = unlimited_nodes;  // ... to this many
  OfferScope scope = OfferScope::cluster;

  static constexpr int unlimited_nodes = std::numeric_limits<int>::max();
  bool covers(int nodes) const { return nodes >= least_nodes && nodes <= most_nodes; }
};

/// The rental of `nodes` nodes by the rule above. If no offer rents that many together, the rule
/// applies to the offers of the widest scope, and the result does not cover `nodes`. Nothing if no
/// offer names the type.
std::optional<Rental> rental_of(std::string_view node, int nodes);

/// Every node type that has an offer, by name. A type whose price as a single node differs from
/// that in clusters appears twice; one that is never rented whole covers no number of nodes.
std::vector<Rental> rentals();

/// Why a rental does not cover the nodes asked for: "rented one node at a time: RunPod on demand
/// ...".
std::string why_not_rented(const Rental& rental);

/// What is known about an offer's price of a cluster besides the amount.
struct ListedPrice {
  std::string provider, date;
  std::string why_indicative;  // rented only in smaller pieces than this cluster; empty: it is not
  bool outdated = false;       // see months_before_newest
};

/// The price of a cluster, by the one rule of all questions: the user's own, else the listed one.
struct ClusterPrice {
  Price per_gpu_hour{};
  std::string source;
  std::optional<ListedPrice> listed;  // nothing: the user's own

  /// Of smaller pieces than the cluster: what it would cost if they were rented together.
  bool indicative() const { return listed && !listed->why_indicative.empty(); }
  bool outdated() const { return listed && listed->outdated; }
};
/// Nothing if neither is known.
std::optional<ClusterPrice> price_of(const Cluster& cluster);

/// Months from the date of a price to the newest dated offer of the catalogue, so that a price has
/// the same age on every day. "2026-10-06" counts as its month, "2025-2026" as December 2026;
/// nothing without a year, never negative.
std::optional<int> months_before_newest(std::string_view date);
/// The month of the newest dated offer: "2026-10".
const std::string& newest_offer_month();
/// Prices older than this are marked: list prices fell by 44 % in one year (AWS P5, 2025).
inline constexpr int outdated_after_months = 12;

/// Sets the price of an expanded cluster that has none to the rental price of its nodes. A rental
/// that does not cover that many nodes is used too, and `assumptions` says so.
void put_listed_price(Json& cluster, std::string_view node, Json& assumptions);
/// Removes the price that put_listed_price set, if it is unchanged.
void drop_listed_price(Json& cluster);
/// Changes the number of nodes; a listed price becomes the one listed for the new number.
void set_nodes(Cluster& cluster, int nodes);

/// The last year that a text names, 0 without one: 2026 of "Lambda on demand, 2025-2026".
int year_of(std::string_view text);

}  // namespace orrery::hardware
