#include "scenarios/fitting/collectives/collective_validation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fitting/collectives/collective_curves.hpp"

namespace orrery::scenarios {

namespace {

constexpr Bytes latency_sizes{65536};  // bytes: below it, time is mostly latency

bool is_point_to_point(const MeasuredCollective& row) {
  return row.collective == models::Collective::all_to_all ||
         row.collective == models::Collective::send_receive;
}

std::string collective_class(const MeasuredCollective& row, Constants constants) {
  const std::string kind = is_point_to_point(row) ? "all-to-all and p2p" : "reductions and gathers";
  const bool pcie = row.link.find("PCIe") != std::string::npos;
  if (row.one_domain()) return fmt::format("one {} domain, {}", pcie ? "PCIe" : "NVLink", kind);
  // Where GPUs of a node have no link but PCIe, that limits what crosses the network, too.
  const std::string nodes = pcie ? "across PCIe nodes" : "across nodes";
  if (constants == Constants::own) return fmt::format("{}, network fitted, {}", nodes, kind);
  const bool blind = constants == Constants::others;
  const std::string network = blind ? "network never measured" : "network of the catalogue";
  return fmt::format("{}, {}, {}", nodes, network,
                     row.size < latency_sizes ? "latency (below 64 KiB)" : "from 64 KiB");
}

CurveCard card_of(const std::string& name, const CollectiveCurves::System& system) {
  CurveCard card;
  card.name = name;
  card.kind = "collectives";
  card.rows = system.samples.size();
  for (const CollectiveSample& sample : system.samples) {
    const MeasuredCollective& row = *sample.row;
    card.sources.insert(published_place(row.source));
    card.widen("bytes", row.size.count());
    card.widen("gpus", row.gpus);
  }
  for (const auto& [parameter, value] : system.fit.parameters()) card.parameters[parameter] = value;
  return card;
}

void add_cards(CollectiveCurves& curves, CurveReport& report) {
  for (const auto& [name, system] : curves.systems()) {
    CurveCard card = card_of(name, system);
    report.add_errors(card);
    report.cards.push_back(std::move(card));
  }
}

}  // namespace

CurveReport validate_collectives(const std::vector<MeasuredCollective>& rows,
                                 const CollectiveQuestion& question) {
  CollectiveCurves curves{question.reference};
  CurveReport report =
      validated("collectives", rows, question, curves,
                [](const MeasuredCollective& row, const CollectiveAnswer& answer) {
                  return CurveRow{.score_class = collective_class(row, answer.constants),
                                  .curve = system_of(row)};
                });
  if (question.describe_curves) add_cards(curves, report);
  return report;
}

}  // namespace orrery::scenarios
