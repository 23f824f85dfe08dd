#pragma once
// A survey of clusters as JSON, and as text for people.

#include <string>
#include <vector>

#include "scenarios/purchase/purchase.hpp"
#include "scenarios/report/result.hpp"

namespace orrery::scenarios {

struct PurchaseReport {
  const PurchaseQuery& query;
  const PurchaseAnswer& answer;
  std::vector<std::string> assumptions;
  std::string model;       // as the user names it, for the command line of the best choice
  std::string software;    // the same; empty: the usual one
  std::size_t top = 10;    // choices that the text shows; JSON has all
  std::string defaults{};  // flags that were not given and their values, for the header
};

/// `meets` whether any choice meets deadline and budget, `reason` why none does, `choices[]` and
/// `impossible[]`. The same bytes on every run.
Json to_json(const PurchaseReport& report);
std::string text_of(const PurchaseReport& report, const ReportOptions& options);
/// Days against dollars of all choices with a price, both logarithmic, with their ranges; the front
/// of those that none beats in both is numbered and listed, limits are lines (SVG).
std::string picture_of(const PurchaseReport& report);

/// Why no choice meets deadline and budget, and what comes closest. Empty if one does.
std::string reason_of(const PurchaseAnswer& answer);

/// Why a choice has no price, and how to state one.
std::string why_no_price(const PurchaseQuery& query, const PurchaseChoice& choice);

/// What a survey leaves out or assumes, one sentence each.
std::vector<std::string> purchase_assumptions();

}  // namespace orrery::scenarios
