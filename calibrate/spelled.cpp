#include "calibrate/spelled.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

std::string spelled(Time time) {
  return fmt::format("{} ns", static_cast<double>(time.count()) / 1000);
}
std::string spelled(Bytes bytes) {
  return fmt::format("{} B", bytes.count());
}
std::string spelled(Bandwidth rate) {
  return fmt::format("{:.4g} GB/s", rate.count() / 1e9);
}
std::string spelled(FlopRate rate) {
  return fmt::format("{:.4g} TFLOP/s", rate.count() / 1e12);
}
double digits(double value) {
  return std::stod(fmt::format("{:.5g}", value));
}

Json points_of(const hardware::SizeTable& table) {
  Json points = Json::array();
  for (const auto& [size, time] : table.points()) points.push_back({spelled(size), spelled(time)});
  return points;
}

Json curve_json(const hardware::GemmCurve& curve) {
  return {{"compute_share", digits(curve.compute_share)},
          {"memory_share", digits(curve.memory_share)},
          {"overhead", spelled(curve.overhead)},
          {"corner", curve.corner}};
}

Json ratios_json(const std::vector<hardware::ShapeResidual::ResidualSample>& samples) {
  Json rows = Json::array();
  for (const auto& [shape, log_ratio] : samples) {
    const double kept = std::clamp(std::exp(log_ratio), 1e-3, 1e3);
    rows.push_back({shape.m, shape.n, shape.k, digits(kept)});
  }
  return rows;
}

Json kernel_json(const hardware::KernelCurve& curve) {
  if (!curve.table.empty()) return {{"points", points_of(curve.table)}};
  return {{"overhead", spelled(curve.overhead)}, {"rate", spelled(curve.rate)}};
}

Json times_json(const std::vector<Time>& times) {
  Json json = Json::array();
  for (const Time each : times) json.push_back(static_cast<double>(each.count()) / 1e6);
  return json;
}

Time median_time(const Json& part) {
  std::vector<Time> times;
  for (const Json& each : part.at("us")) times.push_back(scaled(1_us, each.get<double>()));
  return quantile(std::move(times), 0.5);
}

Json described(const models::Operation& op) {
  Json json{{"operation", op.name},
            {"kind", std::string{models::name(op.kind)}},
            {"format", std::string{hardware::name(op.dtype)}},
            {"bytes", op.bytes.count()},
            {"flops", op.flops.count()}};
  if (models::is_gemm(op.kind)) {
    json["m"] = op.gemm().m;
    json["n"] = op.gemm().n;
    json["k"] = op.gemm().k;
    json["batch"] = op.gemm().batch;
    json["accumulates"] = op.gemm().accumulate;
    json["layout"] =
        fmt::format("{}{}", op.gemm().transpose_a ? "t" : "n", op.gemm().transpose_b ? "t" : "n");
  }
  if (!op.group_rows().empty()) json["rows"] = op.group_rows();
  if (op.attention().seq > 0) {
    const models::AttentionShape& of = op.attention();
    json["attention"] = {{"batch", of.batch},       {"seq", of.seq},
                         {"heads", of.heads},       {"kv_heads", of.kv_heads},
                         {"head_dim", of.head_dim}, {"causal", of.causal}};
  }
  return json;
}

}  // namespace orrery::calibrate
