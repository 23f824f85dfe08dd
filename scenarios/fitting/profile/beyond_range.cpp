#include "scenarios/fitting/profile/beyond_range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numbers>

#include "hardware/curves/size_table.hpp"
#include "scenarios/fitting/collectives/measured_collective.hpp"
#include "scenarios/fitting/kernels/curve_tables.hpp"
#include "scenarios/fitting/kernels/kernel_curves.hpp"
#include "scenarios/validation/statistics.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::array<std::int64_t, 4> cuts{2, 4, 8, 16};
/// With fewer rows, what is left decides nothing about what was left out.
constexpr std::size_t least_inside = 5;

enum class Beyond : std::uint8_t { above, below };

/// Calls visit(inside, outside, factor of each) for each cut of a curve's rows by one of their
/// sizes.
template <class Measured, class Visit>
void for_each_cut(const std::vector<const Measured*>& rows,
                  const std::function<std::int64_t(const Measured&)>& size, Visit visit) {
  std::int64_t least = size(*rows.front()), most = least;
  for (const Measured* each : rows) {
    least = std::min(least, size(*each));
    most = std::max(most, size(*each));
  }
  for (const std::int64_t cut : cuts) {
    for (const Beyond side : {Beyond::above, Beyond::below}) {
      const std::int64_t edge = side == Beyond::above ? most / cut : least * cut;
      std::vector<const Measured*> inside, outside;
      for (const Measured* each : rows) {
        const bool in = side == Beyond::above ? size(*each) <= edge : size(*each) >= edge;
        (in ? inside : outside).push_back(each);
      }
      if (inside.size() < least_inside || outside.empty()) continue;
      std::int64_t nearest = size(*inside.front());
      for (const Measured* each : inside) {
        nearest =
            side == Beyond::above ? std::max(nearest, size(*each)) : std::min(nearest, size(*each));
      }
      visit(inside, outside, [nearest, size](const Measured& row) {
        const double ratio = static_cast<double>(size(row)) / static_cast<double>(nearest);
        return std::max(ratio, 1 / ratio);
      });
    }
  }
}

using KernelSize = std::function<std::int64_t(const MeasuredKernel&)>;

std::vector<KernelSize> kernel_sizes(KernelForm form) {
  const KernelSize m = [](const MeasuredKernel& row) { return row.m; };
  const KernelSize n = [](const MeasuredKernel& row) { return row.n; };
  const KernelSize k = [](const MeasuredKernel& row) { return row.k; };
  if (form == KernelForm::gemm) return {m, n, k};
  return {k};  // the sequence
}

void add_kernels(const std::vector<MeasuredKernel>& all, std::vector<BeyondPoint>& points) {
  const KernelCurves whole{all, Residual::none};
  for (const auto& [table, curve] : whole.curves()) {
    if (curve.form == KernelForm::stream) continue;
    std::vector<const MeasuredKernel*> rows;
    for (const KernelSample& each : curve.samples) rows.push_back(each.row);
    for (const KernelSize& size : kernel_sizes(curve.form)) {
      for_each_cut<MeasuredKernel>(
          rows, size, [&](const auto& inside, const auto& outside, const auto& factor) {
            std::vector<MeasuredKernel> seen;
            for (const MeasuredKernel* each : inside) seen.push_back(*each);
            KernelCurves cut{std::move(seen), Residual::none};
            if (cut.fit(table) == nullptr) return;
            for (const MeasuredKernel* each : outside) {
              const KernelAnswer answer = cut.seen(*each);
              points.push_back({.kind = curve.form == KernelForm::gemm ? "gemm" : "attention",
                                .factor = factor(*each),
                                .error = std::log(*answer.seconds / *each->seconds)});
            }
          });
    }
  }
}

/// The table of a curve's rows; of equal sizes the first.
hardware::SizeTable table_of_rows(std::vector<const MeasuredCollective*> rows) {
  std::ranges::stable_sort(rows, {}, [](const MeasuredCollective* each) { return each->size; });
  std::vector<hardware::SizeTable::Point> points;
  for (const MeasuredCollective* each : rows) {
    if (!points.empty() && points.back().first == each->size) continue;
    points.emplace_back(each->size, from_seconds(*each->seconds));
  }
  return hardware::SizeTable{std::move(points)};
}

void add_collectives(const std::vector<MeasuredCollective>& all, std::vector<BeyondPoint>& points) {
  std::map<std::string, std::vector<const MeasuredCollective*>> runs;
  for (const MeasuredCollective& each : all) {
    if (each.usable() && each.size.count() > 0) runs[run_of(each)].push_back(&each);
  }
  const auto size = [](const MeasuredCollective& row) { return row.size.count(); };
  for (const auto& [name, rows] : runs) {
    for_each_cut<MeasuredCollective>(
        rows, size, [&](const auto& inside, const auto& outside, const auto& factor) {
          const hardware::SizeTable table = table_of_rows(inside);
          for (const MeasuredCollective* each : outside) {
            points.push_back({.kind = "collective",
                              .factor = factor(*each),
                              .error = std::log(seconds(table.at(each->size)) / *each->seconds)});
          }
        });
  }
}

struct FactorBin {
  const char* name;
  double least, most;
};
constexpr FactorBin bins[] = {{"1 to 2", 1, 2},
                              {"2 to 4", 2, 4},
                              {"4 to 8", 4, 8},
                              {"8 to 16", 8, 16},
                              {"above 16", 16, 1e9}};

double per_factor_e(const std::vector<BeyondPoint>& points) {
  double errors = 0, squares = 0;
  for (const BeyondPoint& each : points) {
    const double x = std::log(each.factor);
    errors += std::abs(each.error) * x;
    squares += x * x;
  }
  return squares > 0 ? std::sqrt(std::numbers::pi / 2) * errors / squares : 0;
}

std::map<std::string, std::vector<BeyondPoint>> by_kind(const std::vector<BeyondPoint>& points) {
  std::map<std::string, std::vector<BeyondPoint>> kinds;
  for (const BeyondPoint& each : points) kinds[each.kind].push_back(each);
  return kinds;
}

}  // namespace

std::vector<BeyondPoint> points_beyond_range(const orrery::Table& table) {
  std::vector<BeyondPoint> points;
  if (holds_kernels(table)) {
    add_kernels(read_kernels(table), points);
  } else if (holds_collectives(table)) {
    add_collectives(read_collectives(table), points);
  } else {
    throw InputError{table.name(), "expected a table of measured kernels or collectives"};
  }
  return points;
}

Json beyond_range_json(const std::vector<BeyondPoint>& points) {
  Json json = Json::object();
  for (const auto& [kind, own] : by_kind(points)) {
    Json& of = json[kind] = {{"rows", own.size()}, {"per_factor_e", per_factor_e(own)}};
    for (const FactorBin& bin : bins) {
      std::vector<double> errors;
      for (const BeyondPoint& each : own) {
        if (each.factor > bin.least && each.factor <= bin.most) {
          errors.push_back(100 * std::expm1(std::abs(each.error)));
        }
      }
      if (!errors.empty()) of["by_factor"][bin.name] = to_json(summary_of(errors));
    }
  }
  return json;
}

std::string beyond_range_text(const std::vector<BeyondPoint>& points) {
  std::string text;
  const Json json = beyond_range_json(points);
  for (const auto& [kind, own] : json.items()) {
    text += fmt::format(
        "{}: {} rows beyond the range of their fit; ln(time / predicted) spreads by "
        "{:.3f} per factor e\n",
        kind, own["rows"].get<std::size_t>(), own["per_factor_e"].get<double>());
    if (!own.contains("by_factor")) continue;
    for (const FactorBin& bin : bins) {
      if (!own["by_factor"].contains(bin.name)) continue;
      const Json& errors = own["by_factor"][bin.name];
      text += fmt::format(
          "  {:<10} times beyond {:>7} rows  |error| median {:>6.1f} %, p90 {:>6.1f} %\n", bin.name,
          errors["rows"].get<std::size_t>(), errors["median_abs_error_pct"].get<double>(),
          errors["p90_abs_error_pct"].get<double>());
    }
  }
  return text;
}

}  // namespace orrery::scenarios
