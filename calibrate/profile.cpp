#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibrate/findings.hpp"
#include "calibrate/fit/minimise.hpp"
#include "calibrate/spelled.hpp"
#include "hardware/catalogue.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using hardware::CollectiveTable;
using hardware::SizeTable;

/// The fastest product measured: what shares of peak are shares of.
FlopRate best_rate(const Findings& findings) {
  double best = 0;
  for (const auto* points : {&findings.products, &findings.batched}) {
    for (const ProductPoint& each : *points) {
      best = std::max(best, static_cast<double>(each.work.count()) / seconds(each.time));
    }
  }
  return FlopRate{best};
}

/// Copies of large blocks where they were measured, else the fastest kernel.
Bandwidth best_bandwidth(const Findings& findings) {
  if (findings.copy_rate) return *findings.copy_rate;
  double best = 1e9;
  for (const auto& kind : findings.kernels) {
    for (const KernelPoint& each : kind.second) {
      best = std::max(best, static_cast<double>(each.traffic.count()) / seconds(each.time));
    }
  }
  return Bandwidth{best};
}

/// All kinds together, for those that were not measured: half of them are slower.
KernelFit usual_kernel(const Findings& findings) {
  std::vector<KernelPoint> all;
  for (const auto& kind : findings.kernels) {
    all.insert(all.end(), kind.second.begin(), kind.second.end());
  }
  if (all.empty()) all.push_back({Bytes{1 << 20}, Time{100'000'000}});
  return fit_kernel(all);
}

const CollectiveTable* table_of(const Findings& findings, std::string_view operation) {
  for (const CollectiveTable& each : findings.collectives) {
    if (each.operation == operation) return &each;
  }
  return nullptr;
}

/// Constants for the operations and groups that no table covers.
Json scale_up_json(const Findings& findings, Bandwidth memory) {
  Json json{{"name", "shared-memory"}, {"kind", "shared_memory"}};
  Bandwidth rate = memory * 0.5;
  Time step = 2_us;
  if (const CollectiveTable* table = table_of(findings, "all_reduce")) {
    const auto& [size, time] = table->times.points().back();
    const int n = table->ranks;
    rate = Bandwidth{static_cast<double>(size.count()) * 2 * (n - 1) / n / seconds(time)};
    step = Time{table->times.latency().count() / (2 * (n - 1))};
  }
  json["bandwidth"] = spelled(rate);
  json["base"] = "0 us";
  json["step"] = spelled(step);
  json["ring_share"] = 1.0;
  return json;
}

Json concurrency_json(const Findings& findings) {
  Json json = Json::array();
  for (const hardware::Concurrency& each : findings.concurrency) {
    json.push_back({{"ranks", each.ranks},
                    {"gemm", digits(each.gemm)},
                    {"memory_bound", digits(each.memory_bound)}});
  }
  return json;
}

std::string device_name(const Machine& machine) {
  std::string name;
  for (const char c : machine.processor) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "cpu" : name;
}

/// The kinds of kernel, each with its better form.
Json kernels_json(const Findings& findings, std::vector<CurveCard>& cards) {
  Json json = Json::object();
  for (const auto& [kind, points] : findings.kernels) {
    const KernelFit fit = fit_kernel(points);
    json[kind] = kernel_json(fit.curve);
    cards.push_back({kind, fit.sizes, fit.leave_out_error_pct});
  }
  return json;
}

/// Products of experts, against the curves that the file has by now.
void put_grouped(Json& gpu, const Findings& findings, std::vector<CurveCard>& cards) {
  if (findings.grouped.empty()) return;
  const Document so_far = Document::from(gpu, "this machine's processor");
  for (const auto& [format, fit] :
       fit_grouped(findings.grouped, hardware::read_gpu(so_far.root()))) {
    const std::string word{hardware::name(format)};
    gpu["measured"]["grouped_gemm"][word] = ratios_json(fit.residuals);
    cards.push_back({"grouped_gemm " + word, fit.residuals.size(), {}});
  }
}

Json gpu_json(const Findings& findings, int ranks, std::vector<CurveCard>& cards) {
  const Roof roof{.peak = best_rate(findings), .memory = best_bandwidth(findings)};
  const ProductFit gemm = fit_products(findings.products, roof);
  cards.push_back({"gemm fp32", findings.products.size(), gemm.leave_out_error_pct});
  Json measured;
  measured["gemm"] = {{"fp32", ratios_json(gemm.residuals)}};
  if (!findings.batched.empty()) {
    const ProductFit batched = fit_products(findings.batched, {roof.peak, roof.memory, 1});
    cards.push_back({"batched_gemm fp32", findings.batched.size(), batched.leave_out_error_pct});
    measured["batched"] = {{"fp32", curve_json(batched.curve)}};
    measured["batched_gemm"] = {{"fp32", ratios_json(batched.residuals)}};
  }
  measured["kernels"] = kernels_json(findings, cards);
  if (!findings.concurrency.empty()) measured["concurrency"] = concurrency_json(findings);

  const KernelFit usual = usual_kernel(findings);
  const Time small = usual.curve.at(Bytes{1});
  const Time large = usual.curve.at(Bytes{1 << 20}) - small;
  const double rate = (1 << 20) / std::max(1e-12, seconds(large));
  Json gpu;
  gpu["name"] = device_name(findings.machine);
  gpu["generation"] = "cpu";
  gpu["dense_peak"] = {{"fp32", spelled(roof.peak)},
                       {"fp64", spelled(FlopRate{roof.peak.count() / 2})},
                       {"bf16", spelled(roof.peak)},
                       {"fp16", spelled(roof.peak)},
                       {"fp8", spelled(roof.peak)}};
  gpu["memory"] = fmt::format("{} B", findings.machine.memory.count() / ranks);
  gpu["memory_bandwidth"] = spelled(roof.memory);
  gpu["gemm"] = {{"fp32", curve_json(gemm.curve)}};
  gpu["memory_bound"] = {
      {"memory_share", digits(std::clamp(rate / roof.memory.count(), 1e-6, 1.0))},
      {"overhead", spelled(small)}};
  gpu["measured"] = std::move(measured);
  gpu["sources"] = {{"", source_line(findings.machine)},
                    {"/dense_peak/fp64", "half of fp32: vectors of half as many elements"},
                    {"/dense_peak/bf16", "computed in fp32, rounded when stored"},
                    {"/dense_peak/fp16", "computed in fp32, rounded when stored"},
                    {"/dense_peak/fp8", "computed in fp32, rounded when stored"}};
  put_grouped(gpu, findings, cards);
  return gpu;
}

}  // namespace

Profile make_profile(const Findings& findings, Json software) {
  ensure(!findings.products.empty(), "a profile needs measured products");
  Profile profile;
  int ranks = findings.machine.cores;
  for (const auto& each : findings.concurrency) ranks = std::max(ranks, each.ranks);
  for (const auto& each : findings.collectives) ranks = std::max(ranks, each.ranks);
  Json gpu = gpu_json(findings, ranks, profile.curves);
  for (const CollectiveTable& table : findings.collectives) {
    profile.curves.push_back({fmt::format("{} {} ranks", table.operation, table.ranks),
                              table.times.points().size(), interpolation_error_pct(table.times)});
  }
  const std::string source = source_line(findings.machine);
  Json scale_up = scale_up_json(findings, best_bandwidth(findings));
  Json node{{"name", "this-machine"},
            {"gpu", std::move(gpu)},
            {"gpus", ranks},
            {"scale_up", std::move(scale_up)},
            {"nics", 0}};
  Json& cluster = profile.cluster;
  cluster["name"] = "calibrated-" + device_name(findings.machine);
  cluster["node"] = std::move(node);
  cluster["nodes"] = 1;
  cluster["fabric"] = "none";
  if (!findings.collectives.empty()) {
    cluster["measured_collectives"] = to_json(findings.collectives);
  }
  if (findings.storage.read || findings.storage.write) {
    Json& storage = cluster["storage"];
    if (findings.storage.read) storage["read"] = spelled(*findings.storage.read);
    if (findings.storage.write) storage["write"] = spelled(*findings.storage.write);
  }
  software["source"] = source;
  software["host"]["forward_launch"] = spelled(findings.launch);
  software["host"]["backward_launch"] = spelled(findings.launch);
  software["host"]["communication_launch"] = spelled(findings.launch);
  cluster["software"] = std::move(software);
  cluster["sources"] = {{"", source}};
  return profile;
}

std::vector<CollectiveTable> collective_tables(const std::vector<Sample>& samples) {
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<Key, std::map<std::int64_t, std::vector<double>>> found;
  for (const Sample& sample : samples) {
    const Time* time = std::get_if<Time>(&sample.value);
    constexpr const char* known[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                     "reduce",     "all_to_all", "send_receive"};
    const bool collective =
        std::find(std::begin(known), std::end(known), sample.quantity) != std::end(known);
    if (!time || !collective || !sample.size || !sample.ranks || *sample.ranks < 2) continue;
    if (sample.detail == "in_place" || *time < Time{1} || *sample.size < Bytes{1}) continue;
    found[{sample.quantity, *sample.ranks, sample.nodes.value_or(1)}][sample.size->count()]
        .push_back(static_cast<double>(time->count()));
  }
  std::vector<CollectiveTable> tables;
  for (const auto& [key, sizes] : found) {
    std::vector<SizeTable::Point> points;
    for (const auto& [size, times] : sizes) {
      points.push_back({Bytes{size}, Time{std::llround(median_of(times))}});
    }
    tables.push_back({std::get<0>(key), static_cast<int>(std::get<1>(key)),
                      static_cast<int>(std::get<2>(key)), SizeTable{std::move(points)}});
  }
  return tables;
}

Json to_json(const std::vector<CollectiveTable>& tables) {
  Json json = Json::array();
  for (const CollectiveTable& table : tables) {
    Json entry{{"operation", table.operation}, {"ranks", table.ranks}};
    if (table.nodes > 1) entry["nodes"] = table.nodes;
    entry["points"] = points_of(table.times);
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace orrery::calibrate
