#include "hardware/curves/calibration.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

constexpr std::int64_t longest_side = std::int64_t{1} << 40;

/// `[[m, n, k, ratio], ...]`: measured time over the curve's.
ShapeResidual read_shapes(const Node& shapes) {
  std::vector<ShapeResidual::ResidualSample> samples;
  for (const Node& each : shapes.elements()) {
    if (each.elements().size() != 4) each.fail_expected("[m, n, k, measured over curve]");
    samples.push_back({.shape = {.m = each.at(0).integer(1, longest_side),
                                 .n = each.at(1).integer(1, longest_side),
                                 .k = each.at(2).integer(1, longest_side)},
                       .log_ratio = std::log(within(each.at(3), 1e-3, 1e3))});
  }
  return ShapeResidual{std::move(samples)};
}

GemmCurve read_product(const Node& curve) {
  curve.only({"compute_share", "memory_share", "overhead", "corner"});
  return {.compute_share = within(curve["compute_share"], 1e-6, 1e6),
          .memory_share = within(curve["memory_share"], 1e-6, 1e6),
          .overhead = curve["overhead"].as<Time>(),
          .corner = within(curve["corner"], 1, 100),
          .origin = {}};
}

KernelCurve read_kernel(const Node& kernel) {
  kernel.only({"points", "overhead", "rate"});
  if (const auto points = kernel.find("points")) return {.table = read_size_table(*points)};
  return {.table = {},
          .overhead = kernel["overhead"].as<Time>(),
          .rate = positive<Bandwidth>(kernel["rate"])};
}

template <class Value>
void read_by_format(const Node& measured, std::string_view key, Value (*read)(const Node&),
                    std::map<DType, Value>& by_format) {
  const auto given = measured.find(key);
  if (!given) return;
  for (const auto& [format, each] : given->members()) {
    by_format[read_format(format, each)] = read(each);
  }
}

std::vector<Concurrency> read_concurrency(const Node& measured) {
  std::vector<Concurrency> read;
  for (const Node& each : measured.elements()) {
    each.only({"ranks", "gemm", "memory_bound"});
    const auto ranks = static_cast<int>(each["ranks"].integer(2, 1 << 16));
    if (!read.empty() && ranks <= read.back().ranks) each.fail("ranks must increase");
    read.push_back({.ranks = ranks,
                    .gemm = within(each["gemm"], 0.1, 1e5),
                    .memory_bound = within(each["memory_bound"], 0.1, 1e5)});
  }
  return read;
}

HostLink read_host_link(const Node& link) {
  link.only({"to_device", "from_device"});
  return {.to_device = read_size_table(link["to_device"]),
          .from_device = read_size_table(link["from_device"])};
}

}  // namespace

const KernelCurve* Calibration::kernel(std::string_view kind) const {
  const auto found = kernels.find(kind);
  return found == kernels.end() ? nullptr : &found->second;
}

double Calibration::slowdown(KernelClass kind, int ranks) const {
  const auto factor = [&](const Concurrency& at) {
    return kind == KernelClass::gemm ? at.gemm : at.memory_bound;
  };
  Concurrency low;
  for (const Concurrency& high : concurrency) {
    if (ranks <= high.ranks) {
      const double part = static_cast<double>(ranks - low.ranks) / (high.ranks - low.ranks);
      return factor(low) + part * (factor(high) - factor(low));
    }
    low = high;
  }
  return concurrency.empty() ? 1 : factor(low) * ranks / low.ranks;
}

SizeTable read_size_table(const Node& points) {
  std::vector<SizeTable::Point> read;
  for (const Node& point : points.elements()) {
    if (point.elements().size() != 2) point.fail_expected("[size, time]");
    const SizeTable::Point next{positive<Bytes>(point.at(0)), positive<Time>(point.at(1))};
    if (!read.empty() && next.first <= read.back().first) point.fail("sizes must increase");
    read.push_back(next);
  }
  if (read.empty()) points.fail("a table needs a point");
  return SizeTable{std::move(read)};
}

Calibration read_calibration(const Node& measured) {
  measured.only({"kernels", "gemm", "batched", "batched_gemm", "grouped_gemm", "concurrency",
                 "beside_communication", "host_link"});
  Calibration read;
  if (const auto kernels = measured.find("kernels")) {
    for (const auto& [kind, curve] : kernels->members()) read.kernels[kind] = read_kernel(curve);
  }
  read_by_format(measured, "gemm", read_shapes, read.gemm);
  read_by_format(measured, "batched", read_product, read.batched);
  read_by_format(measured, "batched_gemm", read_shapes, read.batched_gemm);
  read_by_format(measured, "grouped_gemm", read_shapes, read.grouped_gemm);
  if (const auto at_once = measured.find("concurrency")) {
    read.concurrency = read_concurrency(*at_once);
  }
  if (const auto overlap = measured.find("beside_communication")) {
    overlap->only({"compute", "communication"});
    read.beside_communication = {.compute = within((*overlap)["compute"], 1, 100),
                                 .communication = within((*overlap)["communication"], 1, 100)};
  }
  if (const auto link = measured.find("host_link")) read.host_link = read_host_link(*link);
  return read;
}

}  // namespace orrery::hardware
