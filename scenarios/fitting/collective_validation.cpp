#include "scenarios/fitting/collective_validation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "scenarios/fitting/collective_curves.hpp"

namespace orrery::scenarios {

namespace {

constexpr Bytes latency_sizes{65536};  // bytes: below it, time is mostly latency

bool is_point_to_point(const MeasuredCollective& row) {
  return row.collective == models::Collective::all_to_all ||
         row.collective == models::Collective::send_receive;
}

std::string collective_class(const MeasuredCollective& row, Constants constants) {
  const std::string kind = is_point_to_point(row) ? "all-to-all and p2p" : "reductions and gathers";
  if (row.one_domain()) {
    const bool pcie = row.link.find("PCIe") != std::string::npos;
    return fmt::format("one {} domain, {}", pcie ? "PCIe" : "NVLink", kind);
  }
  if (constants == Constants::own) return fmt::format("across nodes, network fitted, {}", kind);
  const bool blind = constants == Constants::others;
  const std::string network = blind ? "network never measured" : "network of the catalogue";
  return fmt::format("across nodes, {}, {}", network,
                     row.size < latency_sizes ? "latency (below 64 KiB)" : "from 64 KiB");
}

CurveCard card_of(const std::string& name, const CollectiveCurves::System& system) {
  CurveCard card;
  card.name = name;
  card.kind = "collectives";
  card.rows = system.samples.size();
  std::set<std::string> sources;
  std::int64_t low = -1;
  std::int64_t high = 0;
  int fewest = 1 << 30;
  int most = 0;
  for (const CollectiveSample& sample : system.samples) {
    const MeasuredCollective& row = *sample.row;
    sources.insert(published_place(row.source));
    low = low < 0 ? row.size.count() : std::min(low, row.size.count());
    high = std::max(high, row.size.count());
    fewest = std::min(fewest, row.gpus);
    most = std::max(most, row.gpus);
  }
  card.range["bytes"] = {low, high};
  card.range["gpus"] = {fewest, most};
  for (const std::string& source : sources) {
    card.source += (card.source.empty() ? "" : "; ") + source;
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
  CurveReport report;
  report.kind = "collectives";
  report.scoring = question.scoring;
  for (const MeasuredCollective& row : rows) {
    const CollectiveAnswer seen = curves.seen(row);
    const CollectiveAnswer answer = question.scoring == Scoring::in_sample ? seen
                                    : question.leave_out == LeaveOut::gpu  ? curves.other_gpus(row)
                                                                           : curves.unseen(row);
    CurveRow result;
    result.run = row.id;
    result.score_class = collective_class(row, answer.constants);
    result.curve = system_of(row);
    result.not_scored_because = row.set_aside;
    result.in_sample = seen.seconds;
    result.answer(row.seconds, answer.seconds, answer.note);
    report.rows.push_back(std::move(result));
  }
  if (question.describe_curves) add_cards(curves, report);
  return report;
}

}  // namespace orrery::scenarios
