#include "scenarios/fitting/profile/leave_out_groups.hpp"

#include <algorithm>
#include <set>
#include <sstream>

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_folds = 10;
constexpr std::size_t least_groups = 3;
constexpr const char* size_column = "size";

LeaveOutGroups groups_by(const orrery::Table& table, const std::vector<BenchRow>& rows,
                         const std::vector<std::string>& columns) {
  LeaveOutGroups found;
  for (const std::string& column : columns) {
    if (!is_group_column(table, column)) {
      throw InputError{"--leave-out", "unknown column '" + column + "' in " + table.name()};
    }
    found.columns += (found.columns.empty() ? "" : ",") + column;
  }
  std::vector<std::string> keys;
  for (const BenchRow& row : rows) keys.push_back(group_of(table, row, columns));
  const std::set<std::string> different{keys.begin(), keys.end()};
  found.groups = different.size();
  found.folds = std::min(found.groups, most_folds);
  for (const std::string& key : keys) {
    const auto place = std::distance(different.begin(), different.find(key));
    found.fold.push_back(static_cast<std::size_t>(place) % found.folds);
  }
  return found;
}

/// The size class of a model by its parameters.
std::string size_class(const models::Model& model) {
  for (const int billions : {1, 3, 10, 30, 100, 300}) {
    if (model.parameters <= billions * std::int64_t{1'000'000'000}) {
      return "to " + std::to_string(billions) + "B";
    }
  }
  return "above 300B";
}

}  // namespace

std::vector<std::string> columns_of(const std::string& words) {
  std::vector<std::string> columns;
  std::istringstream list{words};
  for (std::string column; std::getline(list, column, ',');) columns.push_back(column);
  return columns;
}

bool is_group_column(const orrery::Table& table, const std::string& column) {
  return table.has(column) || column == size_column;
}

std::string group_of(const orrery::Table& table, const BenchRow& row,
                     const std::vector<std::string>& columns) {
  std::string group;
  for (const std::string& column : columns) {
    group += group.empty() ? "" : ", ";
    group += table.has(column) ? std::string{table[row.row].text(column)}
                               : size_class(row.question.model);
  }
  return group;
}

LeaveOutGroups leave_out_groups(const orrery::Table& table, const std::vector<BenchRow>& rows,
                                const std::vector<std::string>& columns) {
  if (!columns.empty()) return groups_by(table, rows, columns);
  const std::string name = table.has("run") ? "run" : "id";
  const std::vector<std::vector<std::string>> choices{
      {"model", "gpu"}, {"gpus"}, {"tp", "pp"}, {name}};
  LeaveOutGroups found;
  for (const auto& choice : choices) {
    const bool there =
        std::ranges::all_of(choice, [&](const std::string& each) { return table.has(each); });
    if (!there) continue;
    found = groups_by(table, rows, choice);
    if (found.groups >= least_groups) break;
  }
  return found;
}

}  // namespace orrery::scenarios
