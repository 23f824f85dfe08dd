#include "scenarios/fitting/profile/transfer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "models/prediction/error/published_errors.hpp"
#include "models/prediction/error/uncertainty.hpp"
#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/fitting/profile/number_prior.hpp"
#include "scenarios/fitting/profile/software_rows.hpp"
#include "scenarios/fitting/profile/stack_fit.hpp"
#include "scenarios/fitting/profile/step_alone.hpp"
#include "scenarios/fitting/profile/transfer_errors.hpp"
#include "scenarios/search/workers.hpp"
#include "scenarios/validation/validation.hpp"

namespace orrery::scenarios {

namespace {

/// A stack with fewer runs does not contribute to other stacks' priors.
constexpr std::size_t least_rows_of_a_relative = 3;

bool any_fitted(const SoftwareRows& rows) {
  return std::ranges::any_of(rows.by_profile, [](const auto& of) {
    return !std::ranges::all_of(of.second, &BenchRow::held);
  });
}

models::Software profile_of(const std::string& name, const BenchRow& row) {
  const std::vector<std::string> shipped = models::software_names();
  if (std::ranges::find(shipped, name) == shipped.end()) {
    return row.question.software;
  }
  const Document document = Document::from(models::software_profile(name), name);
  return models::read_software(document.root());
}

models::Software generic_of(int year) {
  const auto then = year == 0 ? std::nullopt : std::optional{year};
  const Document document = Document::from(models::software_profile("generic", then), "generic");
  return models::read_software(document.root());
}

/// A run's ln(predicted / measured) that does not depend on the column left out.
struct Baseline {
  double shipped = 0;
  double generic = 0;  // not set for a run that is held
  double wider = 1;    // widening by the fallback curves of `shipped`
};

/// Fits every stack of a table with each group of a column left out.
class LeavingOut {
 public:
  LeavingOut(const orrery::Table& table, unsigned threads, std::size_t own)
      : table_{table}, runs_{read_runs(table)}, threads_{threads}, own_{own} {
    SoftwareRows found = software_rows(runs_, {}, {}, Apart::held);
    // A table of nothing but runs that are reported apart asks about those.
    if (!any_fitted(found)) found = software_rows(runs_, {}, {}, Apart::all);
    for (auto& [name, rows] : found.by_profile) {
      models::Software profile = profile_of(name, rows.front());
      for (BenchRow& each : rows) each.question.software.unexplained = 1;  // found again here
      stacks_.push_back(
          std::make_unique<StackFit>(std::move(rows), std::move(profile), Trials{threads, {}}));
    }
  }

  std::vector<TransferRow> rows(const std::string& column) {
    column_ = column;
    groups_ = groups_by(column);
    known_.clear();
    std::vector<TransferRow> all;
    for (std::size_t stack = 0; stack < stacks_.size(); ++stack) {
      for (const std::string& group : groups_of(stack)) {
        for (TransferRow& each : of_group(stack, group)) all.push_back(std::move(each));
      }
    }
    std::ranges::sort(all, {}, &TransferRow::row);
    return all;
  }

 private:
  /// The group of each row of a fit; of several columns, their cells joined.
  std::vector<std::string> groups_by(const std::string& columns) const {
    std::vector<std::string> groups(runs_.size());
    for (const auto& stack : stacks_) {
      for (const std::size_t i : all_rows(*stack)) {
        const BenchRow& row = (*stack)[i];
        groups[row.row] = group_of(table_, row, columns_of(columns));
      }
    }
    return groups;
  }

  std::set<std::string> groups_of(std::size_t stack) const {
    std::set<std::string> groups;
    for (std::size_t i = 0; i < stacks_[stack]->size(); ++i) {
      groups.insert(groups_[(*stacks_[stack])[i].row]);
    }
    return groups;
  }

  /// The rows of a stack in the group, and all its other rows, which fits use.
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> split(
      std::size_t stack, const std::string& group) const {
    std::pair<std::vector<std::size_t>, std::vector<std::size_t>> both;
    for (std::size_t i = 0; i < stacks_[stack]->size(); ++i) {
      const bool in = groups_[(*stacks_[stack])[i].row] == group;
      (in ? both.first : both.second).push_back(i);
    }
    return both;
  }

  /// The stack as a relative for other stacks' priors, fitted without the group; nothing if too few
  /// rows are left.
  std::optional<Relative> relative(std::size_t stack, const std::string& group) const {
    const StackFit& fit = *stacks_[stack];
    const auto [in, seen] = split(stack, group);
    if (seen.size() < least_rows_of_a_relative) return std::nullopt;
    if (in.empty()) return Relative{&fit.profile(), coordinates_of(fit.profile())};
    return Relative{&fit.profile(), fit.fit(seen, prior_of(fit.profile(), {})).coordinates};
  }

  std::vector<Relative> relatives_of(std::size_t stack, const std::string& group) {
    std::vector<Relative> relatives;
    for (std::size_t other = 0; other < stacks_.size(); ++other) {
      if (other == stack) continue;
      auto [at, fresh] = known_.try_emplace({other, group});
      if (fresh) at->second = relative(other, group);
      if (at->second) relatives.push_back(*at->second);
    }
    return relatives;
  }

  Baseline baseline_of(const StackFit& fit, const BenchRow& row) const {
    models::Question question = row.question;
    question.software.unexplained = fit.profile().unexplained;
    const StepAlone shipped = step_of(question);
    Baseline found{.shipped = std::log(shipped.seconds / row.measured),
                   .wider = models::widening(shipped.fallback_curves)};
    if (row.held) return found;  // the generic profile may not run its strategy
    question.software = generic_of(static_cast<int>(runs_[row.row].year.value_or(0)));
    found.generic = std::log(step_of(question).seconds / row.measured);
    return found;
  }

  /// Baselines by row of the stack, computed once for all columns.
  const std::vector<Baseline>& baselines_of(const StackFit& fit) {
    auto [at, fresh] = baselines_.try_emplace(&fit);
    if (!fresh) return at->second;
    std::vector<Baseline>& found = at->second;
    found.resize(fit.size());
    const Workers workers{.threads = threads_, .progress = {}};
    workers.work_through(fit.size(),
                         [&](std::size_t i, unsigned) { found[i] = baseline_of(fit, fit[i]); });
    return found;
  }

  TransferRow row_of(const StackFit& fit, std::size_t index, bool seen, double left_out) {
    const BenchRow& row = fit[index];
    const Baseline& known = baselines_of(fit)[index];
    models::RunTraits asked = models::traits_of(row.question);
    if (!seen) asked.stack.clear();
    const models::Evidence range = models::evidence_of(models::published_errors().ranges, asked);
    return {
        .row = row.row,
        .group = groups_[row.row],
        .cell = cell_of(runs_[row.row]),
        .profile = fit.profile().name,
        .apart = row.held ? group_apart(runs_[row.row]) : "",
        .seen = seen,
        .shipped = known.shipped,
        .left_out = left_out,
        .generic = known.generic,
        .inside = -left_out >= -known.wider * range.low && -left_out <= known.wider * range.high};
  }

  std::vector<TransferRow> of_group(std::size_t stack, const std::string& group) {
    const StackFit& fit = *stacks_[stack];
    const auto [in, seen] = split(stack, group);
    if (own_ > 0 && in.size() <= own_) return {};
    FittedStack numbers = fit.fit(seen, prior_of(fit.profile(), relatives_of(stack, group)));
    const auto [known, rest] = own_of(in);
    double unexplained = fit.left_to_stack(seen, numbers.coordinates);
    if (own_ > 0) {
      numbers = fit.fit(known, numbers.coordinates);
      const Eigen::VectorXd errors = fit.errors(known, numbers.coordinates);
      unexplained = std::log(unexplained_by({errors.begin(), errors.end()}));
    }
    const Eigen::VectorXd left_out = fit.errors(rest, numbers.coordinates);
    std::vector<TransferRow> rows;
    for (std::size_t i = 0; i < rest.size(); ++i) {
      rows.push_back(row_of(fit, rest[i], !seen.empty(), unexplained - left_out[i]));
    }
    return rows;
  }

  /// The group's rows that are known, evenly over the file, and its others.
  std::pair<std::vector<std::size_t>, std::vector<std::size_t>> own_of(
      const std::vector<std::size_t>& in) const {
    std::pair<std::vector<std::size_t>, std::vector<std::size_t>> both;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool known = i * own_ / in.size() != (i + 1) * own_ / in.size();
      (known ? both.first : both.second).push_back(in[i]);
    }
    return both;
  }

  const orrery::Table& table_;
  std::vector<MeasuredRun> runs_;
  unsigned threads_;
  std::size_t own_;
  std::vector<std::unique_ptr<StackFit>> stacks_;
  std::map<const StackFit*, std::vector<Baseline>> baselines_;
  std::string column_;
  std::vector<std::string> groups_;  // by row of the table
  std::map<std::pair<std::size_t, std::string>, std::optional<Relative>> known_;
};

}  // namespace

std::vector<Transfer> transfers_of(const orrery::Table& table,
                                   const std::vector<std::string>& columns, unsigned threads,
                                   std::size_t own) {
  for (const std::string& each : columns) {
    const std::vector<std::string> together = columns_of(each);
    if (together.empty()) throw InputError{"--leave-out", "expected a column"};
    for (const std::string& column : together) {
      if (is_group_column(table, column)) continue;
      throw InputError{"--leave-out", "unknown column '" + column + "' in " + table.name()};
    }
  }
  LeavingOut leaving{table, threads, own};
  std::vector<Transfer> transfers;
  for (const std::string& column : columns) {
    std::vector<TransferRow> rows = leaving.rows(column);
    if (rows.empty()) {
      throw InputError{table.name(), own == 0 ? "no run to leave out"
                                              : fmt::format("no group has more than {} runs", own)};
    }
    transfers.push_back(transfer_of(column, std::move(rows)));
    transfers.back().own = own;
  }
  return transfers;
}

std::map<std::size_t, double> unseen_errors(const Transfer& transfer) {
  std::map<std::size_t, double> errors;
  for (const auto* rows : {&transfer.rows, &transfer.held}) {
    for (const TransferRow& each : *rows) errors[each.row] = -each.left_out;
  }
  return errors;
}

std::map<std::size_t, double> unseen_errors(const orrery::Table& table, unsigned threads) {
  return unseen_errors(transfers_of(table, {"source"}, threads).front());
}

}  // namespace orrery::scenarios
