#include "scenarios/fitting/profile/transfer_errors.hpp"

#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "scenarios/validation/statistics.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

TransferErrors errors_of(const std::vector<TransferRow>& rows, double TransferRow::*error) {
  std::map<std::string, std::vector<double>> cells;
  std::vector<double> sizes;
  for (const TransferRow& each : rows) {
    cells[each.cell].push_back(100 * each.*error);
    sizes.push_back(100 * std::abs(each.*error));
  }
  std::vector<double> medians, biases;
  for (auto& [cell, errors] : cells) {
    biases.push_back(quantile(errors, 0.5));
    for (double& each : errors) each = std::abs(each);
    medians.push_back(quantile(errors, 0.5));
  }
  return {.cells_mean = std::accumulate(medians.begin(), medians.end(), 0.0) /
                        static_cast<double>(medians.size()),
          .cells_median = quantile(medians, 0.5),
          .rows_median = quantile(sizes, 0.5),
          .rows_p90 = quantile(sizes, 0.9),
          .bias = quantile(biases, 0.5)};
}

/// Percent of rows inside their interval, with equal weight per cell.
double inside_of(const std::vector<TransferRow>& rows) {
  std::map<std::string, std::pair<double, double>> cells;  // inside, all
  for (const TransferRow& each : rows) {
    cells[each.cell].first += each.inside ? 1 : 0;
    cells[each.cell].second += 1;
  }
  double sum = 0;
  for (const auto& [name, counts] : cells) sum += counts.first / counts.second;
  return 100 * sum / static_cast<double>(cells.size());
}

}  // namespace

Transfer transfer_of(const std::string& column, std::vector<TransferRow> rows) {
  Transfer transfer;
  transfer.column = column;
  for (TransferRow& each : rows) {
    (each.apart.empty() ? transfer.rows : transfer.held).push_back(std::move(each));
  }
  if (transfer.rows.empty()) throw InputError{"--leave-out", "no run to fit to"};
  std::set<std::string> groups, cells;
  for (const TransferRow& each : transfer.rows) {
    groups.insert(each.group);
    cells.insert(each.cell);
  }
  transfer.groups = groups.size();
  transfer.cells = cells.size();
  transfer.shipped = errors_of(transfer.rows, &TransferRow::shipped);
  transfer.left_out = errors_of(transfer.rows, &TransferRow::left_out);
  transfer.generic = errors_of(transfer.rows, &TransferRow::generic);
  transfer.inside = inside_of(transfer.rows);
  return transfer;
}

}  // namespace orrery::scenarios
