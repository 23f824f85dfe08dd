#include "calibrate/import/import_logs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "calibrate/calibrate.hpp"
#include "calibrate/import/assign_to_cluster.hpp"
#include "calibrate/import/effects.hpp"
#include "calibrate/output.hpp"
#include "hardware/catalogue.hpp"
#include "sim/input/text.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::calibrate {

namespace {

/// "imported from a.log b.log".
std::string source_of(const ImportRequest& request) {
  std::string source = "imported from";
  for (const std::string& log : request.logs) {
    source += " " + std::filesystem::path{log}.filename().string();
  }
  return source;
}

/// Whether a cluster has a network whose NICs' rate can be set.
bool has_nics(const Json& cluster) {
  return cluster.contains("fabric") && cluster["fabric"].contains("bandwidth");
}

/// The cluster with the imported tables in place of its own, or the tables alone.
Json imported_profile(const ImportRequest& request, Json profile,
                      const std::vector<Sample>& samples, const std::vector<NicRate>& nics) {
  const std::string source = source_of(request);
  const auto tables = collective_tables(samples);
  if (!tables.empty()) profile["measured_collectives"] = to_json(tables);
  for (const auto& sample : samples) {
    const auto* rate = std::get_if<Bandwidth>(&sample.value);
    if (!rate || (sample.quantity != "storage.read" && sample.quantity != "storage.write"))
      continue;
    profile["storage"][sample.quantity.substr(8)] = fmt::format("{} B/s", rate->count());
  }
  const auto nic = usual_nic_rate(nics);
  if (nic && has_nics(profile)) {
    profile["fabric"]["bandwidth"] = fmt::format("{} B/s", nic->count());
    profile["fabric"]["sources"]["/bandwidth"] = source;
  }
  if (profile.contains("measured_collectives")) {
    profile["sources"]["/measured_collectives"] = source;
  }
  if (profile.contains("storage")) profile["sources"]["/storage"] = source;
  return profile;
}

/// What holds for all logs together.
std::vector<std::string> notes_of(const ImportRequest& request, const ImportAnswer& answer,
                                  const std::vector<NicRate>& nics) {
  std::vector<std::string> notes = slow_nics(nics);
  const bool sets_nics = has_nics(request.cluster);
  const auto nic = usual_nic_rate(nics);
  if (nic && sets_nics) {
    notes.push_back(fmt::format("the cluster's NICs: {} by perftest in place of {}",
                                format(Value{*nic}),
                                request.cluster["fabric"]["bandwidth"].get<std::string>()));
  }
  for (std::string& each : unpriced_samples(answer.samples, sets_nics)) {
    notes.push_back(std::move(each));
  }
  return notes;
}

Json unknown_json(const Imported& log) {
  Json lines = Json::array();
  for (const auto& each : log.unknown) {
    lines.push_back({{"line", each.line}, {"text", printable(each.text, 200)}});
  }
  return lines;
}

std::string import_report(const Imported& log) {
  std::string text =
      fmt::format("{}: {}, {} samples\n", printable(log.file), log.format, log.samples.size());
  std::map<std::string, std::pair<std::size_t, const Sample*>> by_quantity;
  for (const auto& sample : log.samples) {
    auto& [count, last] = by_quantity[sample.quantity];
    ++count;
    last = &sample;
  }
  for (const auto& [quantity, entry] : by_quantity) {
    const Sample& last = *entry.second;
    text +=
        fmt::format("  {:<24} {:>5}  last {}{}{}{}\n", quantity, entry.first, format(last.value),
                    last.size ? fmt::format(" for {} B", last.size->count()) : "",
                    last.ranks ? fmt::format(", {} ranks", *last.ranks) : "",
                    last.device.empty() ? "" : ", " + printable(last.device));
  }
  for (const std::string& note : log.notes) text += fmt::format("  note: {}\n", printable(note));
  if (log.unknown.empty()) return text;
  constexpr std::size_t shown = 5;
  text += fmt::format("  {} lines not understood:\n", log.unknown.size());
  for (std::size_t i = 0; i < std::min(shown, log.unknown.size()); ++i) {
    text +=
        fmt::format("    line {}: {}\n", log.unknown[i].line, printable(log.unknown[i].text, 100));
  }
  return text;
}

}  // namespace

ImportAnswer import_logs(const ImportRequest& request) {
  ImportAnswer answer;
  const Document cluster = Document::from(request.cluster, request.cluster_name);
  for (const std::string& path : request.logs) {
    Imported log = import_log(path);
    if (!request.cluster.empty()) assign_to_cluster(hardware::read_cluster(cluster.root()), log);
    answer.samples.insert(answer.samples.end(), log.samples.begin(), log.samples.end());
    answer.logs.push_back(std::move(log));
  }
  for (const auto& table : collective_tables(answer.samples)) {
    answer.curves.push_back(
        {fmt::format("{} {} ranks {} nodes", table.operation, table.ranks, table.nodes),
         table.times.points().size(), interpolation_error_pct(table.times)});
  }
  const std::vector<NicRate> nics = nic_rates(answer.logs);
  answer.profile = imported_profile(request, cluster.json(), answer.samples, nics);
  answer.notes = notes_of(request, answer, nics);
  if (!request.out) return answer;
  const Json json = to_json(request, answer);
  write_json(*request.out, answer.profile);
  write_json(samples_path(*request.out),
             {{"logs", json.at("logs")}, {"samples", json.at("samples")}});
  return answer;
}

Json to_json(const ImportRequest& request, const ImportAnswer& answer) {
  Json logs = Json::array(), rows = Json::array();
  for (std::size_t i = 0; i < answer.logs.size(); ++i) {
    const Imported& log = answer.logs[i];
    logs.push_back({{"file", request.logs[i]},
                    {"format", std::string{log.format}},
                    {"samples", log.samples.size()},
                    {"notes", log.notes},
                    {"unknown_lines", unknown_json(log)},
                    {"facts", log.facts}});
  }
  for (const Sample& sample : answer.samples) rows.push_back(to_json(sample));
  return {{"profile", or_null(request.out)},
          {"samples", std::move(rows)},
          {"curves", to_json(answer.curves)},
          {"notes", answer.notes},
          {"logs", std::move(logs)}};
}

std::string table_of(const ImportRequest& request, const ImportAnswer& answer) {
  std::string text;
  for (const Imported& log : answer.logs) text += import_report(log);
  for (const std::string& note : answer.notes) text += "note: " + printable(note) + "\n";
  if (!request.out) return text;
  const char* rest = "";
  if (answer.profile.empty()) {
    rest = "; the profile is empty: nothing in these logs makes a table";
  } else if (request.cluster.empty()) {
    rest =
        "; the profile has tables only: state the measured cluster with --cluster for one that "
        "simulate accepts";
  }
  return text + fmt::format("wrote {} and its samples{}\n", *request.out, rest);
}

}  // namespace orrery::calibrate
