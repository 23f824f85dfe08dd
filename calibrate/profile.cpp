#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "calibrate/gpu_entry.hpp"
#include "calibrate/spelled.hpp"
#include "hardware/catalogue.hpp"
#include "hardware/cluster/recognise.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"
#include "sim/statistics.hpp"

namespace orrery::calibrate {

namespace {

using hardware::CollectiveTable;
using hardware::SizeTable;

const CollectiveTable* table_of(const Findings& findings, std::string_view operation) {
  for (const CollectiveTable& each : findings.collectives) {
    if (each.operation == operation) return &each;
  }
  return nullptr;
}

/// Scale-up constants between the cores of a processor, for what no measured table covers.
Json shared_memory(const Findings& findings, Bandwidth memory) {
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

/// The scale-up network of this machine's GPUs: that of the catalogue's node, else PCIe.
Json between_gpus(const Findings& findings) {
  if (findings.gpu->count == 1) return {{"name", "none"}, {"kind", "none"}};
  const auto known = catalogue_name(findings);
  const auto node = known ? hardware::node_with(*known) : std::nullopt;
  return hardware::Catalogue::node(node.value_or("l40s-8x")).at("scale_up");
}

/// The stack's profile with this machine's launch costs and the name of the attention curve that
/// was measured.
Json measured_stack(Json software, const Findings& findings, const std::string& source) {
  software["source"] = source;
  const LaunchCosts& costs = findings.launch;
  const auto put = [&](const char* key, const std::optional<Time>& time) {
    if (time) software["host"][key] = spelled(*time);
  };
  put("forward_launch", costs.forward);
  put("backward_launch", costs.backward);
  put("graph_launch", costs.graph);
  put("communication_launch", costs.communication);
  if (costs.communication_ranks == 1) {
    software["source"] =
        source + "; communication_launch measured with a communicator of one rank, a lower bound";
  }
  if (!findings.attention.empty()) {
    software["kernels"]["attention"] = {{"default", attention_name(findings.fused)}};
  }
  return software;
}

/// Devices of the node: its GPUs; for a processor its cores, or more if more ranks were measured
/// concurrently.
int devices_of(const Findings& findings) {
  if (findings.gpu) return findings.gpu->count;
  int ranks = findings.machine.cores;
  for (const auto& each : findings.concurrency) ranks = std::max(ranks, each.ranks);
  for (const auto& each : findings.collectives) ranks = std::max(ranks, each.ranks);
  return ranks;
}

Json storage_json(const hardware::Storage& storage) {
  Json json = Json::object();
  if (storage.read) json["read"] = spelled(*storage.read);
  if (storage.write) json["write"] = spelled(*storage.write);
  return json;
}

Json decoding_json(const std::vector<DecodingRate>& decoding) {
  Json list = Json::array();
  for (const DecodingRate& each : decoding) {
    Json entry{{"format", each.format}, {"per_core", calibrate::digits(each.per_core)}};
    if (each.pixels > 0) entry["pixels"] = each.pixels;
    if (!each.library.empty()) {
      entry["source"] =
          fmt::format("{}, {:.0f} bytes a picture of 1/f noise", each.library, each.bytes);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

void put_files(const Findings& findings, Json& cluster) {
  Json storage = storage_json(findings.storage);
  if (findings.random_read) storage["random_read"] = spelled(*findings.random_read);
  if (!storage.empty()) cluster["storage"] = storage;
  if (!findings.decoding.empty()) cluster["decoding"] = decoding_json(findings.decoding);
}

}  // namespace

Json with_measured_files(Json cluster, const Findings& findings) {
  Json measured = Json::object();
  put_files(findings, measured);
  cluster.merge_patch(measured);
  const std::string source = source_line(findings.machine);
  cluster["sources"]["/storage"] = source;
  if (cluster.contains("decoding")) cluster["sources"]["/decoding"] = source;
  return cluster;
}

std::string_view name(CopyPath path) {
  constexpr std::string_view names[] = {"on the device", "to the device", "from the device",
                                        "to the device, page-locked",
                                        "from the device, page-locked"};
  return names[static_cast<std::size_t>(path)];
}

double best_copy(const Findings& findings, CopyPath path) {
  double best = 0;
  for (const CopyPoint& each : findings.copies) {
    if (each.path != path) continue;
    best = std::max(best, static_cast<double>(each.size.count()) / seconds(each.time));
  }
  return best;
}

std::optional<Bandwidth> copy_rate(const Findings& findings) {
  const double best = best_copy(findings, CopyPath::on_device);
  return best > 0 ? std::optional{Bandwidth{2 * best}} : std::nullopt;
}

std::optional<double> sustained_share(const Findings& findings, SustainedLoad::Of of) {
  std::vector<double> shares;
  for (const SustainedLoad& each : findings.loads) {
    if (each.of == of) shares.push_back(each.share());
  }
  if (shares.empty()) return std::nullopt;
  return std::clamp(median(shares), 0.1, 1.0);
}

CalibratedProfile make_profile(const Findings& findings, Json software) {
  ensure(findings.has_products(), "a profile needs measured GEMMs");
  CalibratedProfile profile;
  const int devices = devices_of(findings);
  const std::string source = source_line(findings);
  Json gpu = gpu_entry(findings, devices, profile.curves);
  for (const CollectiveTable& table : findings.collectives) {
    profile.curves.push_back({fmt::format("{} {} ranks", table.operation, table.ranks),
                              table.times.points().size(), interpolation_error_pct(table.times)});
  }
  const auto memory = parse_quantity<Bandwidth>(gpu.at("memory_bandwidth").get<std::string>());
  Json& cluster = profile.cluster;
  cluster["name"] = "calibrated-" + gpu.at("name").get<std::string>();
  cluster["node"] = {
      {"name", "this-machine"},
      {"gpu", std::move(gpu)},
      {"gpus", devices},
      {"scale_up", findings.gpu ? between_gpus(findings) : shared_memory(findings, *memory)},
      {"nics", 0}};
  cluster["nodes"] = 1;
  cluster["fabric"] = "none";
  if (!findings.collectives.empty()) {
    cluster["measured_collectives"] = to_json(findings.collectives);
  }
  put_files(findings, cluster);
  cluster["software"] = measured_stack(std::move(software), findings, source);
  cluster["sources"] = {{"", source}};
  std::string notes = "not measured:";
  for (const std::string& each : findings.missing) notes += " " + each + ".";
  if (!findings.missing.empty()) cluster["notes"] = notes;
  return profile;
}

bool in_collective_table(const Sample& sample) {
  const Time* time = std::get_if<Time>(&sample.value);
  const auto& known = hardware::measured_operations;
  const bool collective = std::ranges::find(known, sample.quantity) != known.end();
  return collective && time && *time >= Time{1} && sample.size && *sample.size >= Bytes{1} &&
         sample.ranks && *sample.ranks >= 2 && sample.detail != "in_place";
}

std::vector<CollectiveTable> collective_tables(const std::vector<Sample>& samples) {
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  std::map<Key, std::map<std::int64_t, std::vector<double>>> found;
  for (const Sample& sample : samples) {
    if (!in_collective_table(sample)) continue;
    found[{sample.quantity, *sample.ranks, sample.nodes.value_or(1)}][sample.size->count()]
        .push_back(static_cast<double>(std::get<Time>(sample.value).count()));
  }
  std::vector<CollectiveTable> tables;
  for (const auto& [key, sizes] : found) {
    std::vector<SizeTable::Point> points;
    for (const auto& [size, times] : sizes) {
      points.push_back({Bytes{size}, Time{std::llround(median(times))}});
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
