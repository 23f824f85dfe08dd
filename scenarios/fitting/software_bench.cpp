#include "scenarios/fitting/software_bench.hpp"

#include <cmath>
#include <utility>

#include "scenarios/fitting/step_alone.hpp"
#include "scenarios/search/workers.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

SoftwareBench::SoftwareBench(std::vector<BenchRow> rows, Trials trials)
    : rows_{std::move(rows)}, trials_{std::move(trials)} {
  ensure(!rows_.empty(), "a fit needs rows");
  for (const BenchRow& each : rows_) {
    programs_.push_back(models::lower(each.question));
    fallback_curves_.push_back(
        step_of(programs_.back(), each.question.cluster, each.question.software).fallback_curves);
  }
}

models::Software SoftwareBench::with(const std::vector<double>& numbers) const {
  models::Software software = start();
  for (std::size_t i = 0; i < numbers.size(); ++i) software_numbers()[i].set(software, numbers[i]);
  return software;
}

std::optional<std::vector<double>> SoftwareBench::errors(const std::vector<double>& numbers) {
  const auto found = known_.find(numbers);
  if (found != known_.end()) return found->second;
  const models::Software software = with(numbers);
  std::vector<double> logs(rows_.size());
  const Workers workers{.threads = trials_.threads, .progress = {}};
  workers.work_through(rows_.size(), [&](std::size_t i, unsigned) {
    const BenchRow& row = rows_[i];
    logs[i] =
        std::log(step_of(programs_[i], row.question.cluster, software).seconds / row.measured);
  });
  known_.emplace(numbers, logs);
  if (trials_.keep_going && !trials_.keep_going()) return std::nullopt;
  return logs;
}

}  // namespace orrery::scenarios
