#include "hardware/gpu/kernel_rates.hpp"

#include <algorithm>
#include <vector>

#include "hardware/curves/measured.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

std::vector<KernelRate> rows_of(const Table& table) {
  std::vector<KernelRate> all;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row row = table[i];
    const auto number = [&](std::string_view column, double otherwise) {
      return row.number(column).value_or(otherwise);
    };
    all.push_back({.part = std::string{row.text("part")},
                   .pass = std::string{row.text("pass")},
                   .where = std::string{row.text("where")},
                   .start = from_seconds(number("start_us", 0) * 1e-6),
                   .chunk = from_seconds(number("chunk_us", 0) * 1e-6),
                   .rate = FlopRate{number("tflops", 0) * 1e12},
                   .share = number("share_of_peak", 0),
                   .factor = number("factor", 1),
                   .rows = static_cast<int>(row.integer("rows").value_or(0)),
                   .median_error_pct = number("median_error_pct", 0),
                   .p90_error_pct = number("p90_error_pct", 0),
                   .source = std::string{row.text("source")}});
  }
  return all;
}

const std::vector<KernelRate>& all_rates() {
  static const std::vector<KernelRate> all = rows_of(measured_rates());
  return all;
}

}  // namespace

double KernelRate::speed(double peak) const {
  if (rate.count() <= 0) return share * peak;
  return share > 0 ? std::min(rate.count(), share * peak) : rate.count();
}

const KernelRate* find_kernel_rate(std::string_view part, std::string_view pass, const Gpu& gpu) {
  const KernelRate* best = nullptr;
  std::ptrdiff_t least = 0;
  const std::vector<std::string>& fallbacks = gpu.generation.curves_from;
  for (const KernelRate& each : all_rates()) {
    if (each.part != part || (each.pass != pass && !each.pass.empty())) continue;
    const auto fallback = std::ranges::find(fallbacks, each.where) - fallbacks.begin();
    const std::ptrdiff_t away = each.where == gpu.name             ? 0
                                : fallback < std::ssize(fallbacks) ? 1 + fallback
                                : each.where.empty()               ? 1 + std::ssize(fallbacks)
                                                                   : 2 + std::ssize(fallbacks);
    if (best != nullptr && away >= least) continue;
    best = &each;
    least = away;
  }
  return best;
}

const KernelRate& kernel_rate(std::string_view part, std::string_view pass, const Gpu& gpu) {
  const KernelRate* const found = find_kernel_rate(part, pass, gpu);
  ensure(found != nullptr, "a kernel's rate is not in the table");
  return *found;
}

}  // namespace orrery::hardware
