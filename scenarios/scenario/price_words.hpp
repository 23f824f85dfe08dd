#pragma once
// A cluster's price in JSON and in words, with everything that limits what it says.

#include <optional>
#include <string>

#include "hardware/prices/rental.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// `{usd_per_gpu_hour, provider, date, term, source, outdated, indicative}`; null without a price.
/// Of a price that the user states provider, date and term are null.
Json price_json(const std::optional<hardware::ClusterPrice>& price);

/// Where a price is from: "Spheron on demand, 2026-03-17, ...; rented one GPU or superchip at a
/// time: an indication, not the price of such a cluster".
std::string source_words(const hardware::ClusterPrice& price);

/// Why a node type has no price, and how to state one.
std::string no_price_words(const std::string& node);

}  // namespace orrery::scenarios
