#pragma once
// A survey of clusters to rent: the flags of `orrery buy`, and the result with everything that its
// report needs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/purchase/purchase_report.hpp"
#include "scenarios/search/workers.hpp"

namespace orrery::scenarios {

/// The flags of `orrery buy`; empty values mean the defaults.
struct PurchaseRequest {
  std::string model;   // a name or a path
  std::string tokens;  // to train on: "300B"
  std::optional<std::string> software{};
  std::string precision = "bf16";
  std::optional<double> headroom{};                 // share of a GPU's memory to leave free
  std::optional<std::string> deadline{}, budget{};  // "30d", "5M"
  double confidence = 0.8;                          // with which both are kept
  std::string term = "on-demand";                   // 1y, 3y, spot, mix, own, "3y=0.6,spot=0.4"
  std::vector<std::string> quotes{};                // "p5=2.10/h"
  std::optional<std::string> gpus{};                // sizes: "512", "96:768:x2"
  std::optional<std::int64_t> global_batch{}, seq_len{};
  std::optional<std::string> data{};     // member `data` of a scenario: JSON or a path
  std::optional<std::string> between{};  // "{zones, bandwidth, latency, dollars_per_gb}"
  std::vector<std::string> nodes{};      // names or files of node types; empty: all that are rented
  std::size_t top = 10;                  // choices that the text shows
  unsigned threads = 0;                  // 0: as many as the machine has
};

struct PurchaseSurvey {
  PurchaseQuery query{};
  PurchaseAnswer answer{};
  std::vector<std::string> assumptions{};
  std::string model, software;  // as the user names them
  std::size_t top = 10;
  std::string defaults{};  // flags that were not given and their values

  /// The report; it refers to this survey and must not outlive it.
  PurchaseReport report() const;
};

/// Errors  InputError as the flags of `orrery buy`: `--nodes: unknown node 'x'; known: ...`
PurchaseSurvey survey(const PurchaseRequest& request, const Progress& progress);

}  // namespace orrery::scenarios
