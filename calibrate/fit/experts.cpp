#include "calibrate/fit/experts.hpp"

#include <algorithm>
#include <cmath>

#include "models/pricing/calibrated.hpp"
#include "models/pricing/grouped.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;

constexpr double skewed_from = 2;  // the largest expert over the mean

bool is_skewed(const Operation& op) {
  std::int64_t all = 0, most = 0;
  for (const std::int64_t rows : op.group_rows()) {
    all += rows;
    most = std::max(most, rows);
  }
  const auto experts = static_cast<double>(op.group_rows().size());
  return static_cast<double>(most) * experts > skewed_from * static_cast<double>(all);
}

/// Time of one dense GEMM of all rows with a weight of one expert's size, at the FLOPs and bytes of
/// the grouped GEMM.
Time plain_time(const Operation& grouped, const hardware::Gpu& gpu) {
  Operation plain = grouped;
  plain.kind = models::OpKind::gemm;
  plain.mutable_gemm().batch = 1;
  const auto measured = models::calibrated_time(plain, gpu);
  return measured ? *measured : gpu.gemm_time(plain.dtype, plain.flops, plain.bytes);
}

double median_or_none(std::vector<double> of) {
  return of.empty() ? 0 : median(std::move(of));
}

}  // namespace

std::vector<std::int64_t> even_rows(std::int64_t rows, std::int64_t experts) {
  std::vector<std::int64_t> parts;
  for (std::int64_t e = 0; e < experts; ++e) parts.push_back((rows + experts - 1 - e) / experts);
  return parts;
}

/// Rounds the running sum, so that the rows of all experts add up to `rows`.
std::vector<std::int64_t> zipf_rows(std::int64_t rows, std::int64_t experts) {
  double all = 0;
  for (std::int64_t e = 1; e <= experts; ++e) all += 1 / static_cast<double>(e);
  std::vector<std::int64_t> parts;
  double share = 0;
  std::int64_t given = 0;
  for (std::int64_t e = 1; e <= experts; ++e) {
    share += 1 / static_cast<double>(e) / all;
    const std::int64_t by_now =
        e == experts ? rows : std::llround(share * static_cast<double>(rows));
    parts.push_back(by_now - given);
    given = by_now;
  }
  return parts;
}

std::map<models::DType, GroupedFit> fit_grouped(const std::vector<GroupedPoint>& points,
                                                const hardware::Gpu& gpu) {
  std::map<models::DType, GroupedFit> fits;
  std::map<models::DType, std::vector<double>> ratios[2];  // even, skewed
  for (const GroupedPoint& each : points) {
    const models::DType format = each.op.dtype;
    if (!gpu.peak(format) || gpu.gemm.count(format) == 0) continue;
    const double over_rule = ratio(each.time, models::grouped_time(each.op, gpu));
    fits[format].residuals.push_back({models::mean_product(each.op), std::log(over_rule)});
    ratios[is_skewed(each.op) ? 1 : 0][format].push_back(
        ratio(each.time, plain_time(each.op, gpu)));
  }
  for (auto& [format, fit] : fits) {
    fit.even = median_or_none(ratios[0][format]);
    fit.skewed = median_or_none(ratios[1][format]);
  }
  return fits;
}

}  // namespace orrery::calibrate
