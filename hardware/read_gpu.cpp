#include <fmt/format.h>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "hardware/fallback.hpp"
#include "hardware/reading.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

Generation read_generation(const Node& node) {
  const auto name = node.as<std::string>();
  if (!find_entry(EntryKind::generation, name)) {
    node.fail(unknown_entry(EntryKind::generation, name));
  }
  return generation_named(name);
}

/// Where the numbers of a curve come from; what the user gives without a source is "given".
CurveOrigin origin_of(const Json& gpu, const std::string& pointer) {
  const std::string source = source_of(gpu, pointer);
  return {.source = source.empty() ? std::string{given_source} : source, .fallback_from = {}};
}

void read_peaks(const Node& peaks, Gpu& gpu) {
  for (const auto& [format, rate] : peaks.members()) {
    gpu.dense_peak[static_cast<std::size_t>(read_format(format, rate))] = positive<FlopRate>(rate);
  }
  if (peaks.members().empty()) peaks.fail("a GPU needs the peak of at least one format");
}

/// `[lowest, highest]` measured along one dimension.
void read_ends(const Node& ends, std::int64_t& lowest, std::int64_t& highest) {
  if (ends.elements().size() != 2) ends.fail_expected("the lowest and the highest measured");
  constexpr std::int64_t most = std::int64_t{1} << 40;
  lowest = ends.at(0).integer(1, most);
  highest = ends.at(1).integer(lowest, most);
}

GemmRange read_range(const Node& range) {
  range.only({"rows", "m", "n", "k", "median_error_pct", "p90_error_pct", "includes"});
  GemmRange measured;
  measured.rows = static_cast<int>(range["rows"].integer(1, 1'000'000'000));
  read_ends(range["m"], measured.lowest.m, measured.highest.m);
  read_ends(range["n"], measured.lowest.n, measured.highest.n);
  read_ends(range["k"], measured.lowest.k, measured.highest.k);
  measured.median_error_pct = within(range["median_error_pct"], 0, 1000);
  measured.p90_error_pct = within(range["p90_error_pct"], 0, 10000);
  measured.includes = range.value_or<std::string>("includes", "");
  return measured;
}

GemmCurve read_gemm(const Node& curve) {
  curve.only({"compute_share", "memory_share", "overhead", "corner", "measured"});
  const auto range = curve.find("measured");
  return {.compute_share = share(curve["compute_share"]),
          .memory_share = share(curve["memory_share"]),
          .overhead = curve["overhead"].as<Time>(),
          .corner = within(curve["corner"], 1, 100),
          .origin = {},
          .measured = range ? std::optional{read_range(*range)} : std::nullopt};
}

SequenceRange read_sequences(const Node& range) {
  range.only({"rows", "seq", "median_error_pct", "p90_error_pct"});
  SequenceRange measured;
  measured.rows = static_cast<int>(range["rows"].integer(1, 1'000'000'000));
  read_ends(range["seq"], measured.shortest, measured.longest);
  measured.median_error_pct = within(range["median_error_pct"], 0, 1000);
  measured.p90_error_pct = within(range["p90_error_pct"], 0, 10000);
  return measured;
}

AttentionCurve read_attention(const Node& curve) {
  curve.only(
      {"share_64", "share_128", "half_length", "causal_penalty", "backward_ratio", "measured"});
  const auto range = curve.find("measured");
  return {.share_64 = share(curve["share_64"]),
          .share_128 = share(curve["share_128"]),
          .half_length = within(curve["half_length"], 0, 1e6),
          .causal_penalty = within(curve["causal_penalty"], 0, 100),
          .backward_ratio = within(curve["backward_ratio"], 0.01, 2),
          .origin = {},
          .measured = range ? std::optional{read_sequences(*range)} : std::nullopt};
}

void read_curves(const Node& node, Gpu& gpu) {
  if (const auto curves = node.find("gemm")) {
    for (const auto& [format, curve] : curves->members()) {
      const auto type = dtype_named(format);
      if (!type || !gpu.peak(*type)) curve.fail("a curve for a format without a dense_peak");
      gpu.gemm[*type] = read_gemm(curve);
      gpu.gemm[*type].origin = origin_of(node.json(), "/gemm/" + format);
    }
  }
  if (const auto curves = node.find("attention")) {
    for (const auto& [kernel, curve] : curves->members()) {
      gpu.attention[kernel] = read_attention(curve);
      gpu.attention[kernel].origin = origin_of(node.json(), "/attention/" + kernel);
    }
  }
  if (const auto curve = node.find("memory_bound")) {
    curve->only({"memory_share", "overhead"});
    gpu.memory_bound = {.memory_share = share((*curve)["memory_share"]),
                        .overhead = (*curve)["overhead"].as<Time>(),
                        .origin = origin_of(node.json(), "/memory_bound")};
  }
}

/// The GPU as its file states it, without fallback curves.
Gpu read_measured(const Node& node) {
  node.only({"name", "aliases", "vendor", "generation", "dense_peak", "memory", "memory_bandwidth",
             "scale_up", "host_link", "board_power", "sustained_share", "gemm", "attention",
             "memory_bound", "measured", "curves_from", "notes", "sources"});
  Gpu gpu;
  gpu.name = node["name"].as<std::string>();
  gpu.vendor = node.value_or<std::string>("vendor", "");
  gpu.generation = read_generation(node["generation"]);
  read_peaks(node["dense_peak"], gpu);
  gpu.memory = positive<Bytes>(node["memory"]);
  gpu.memory_bandwidth = positive<Bandwidth>(node["memory_bandwidth"]);
  gpu.scale_up = node.value_or("scale_up", Bandwidth{});
  gpu.host_link = node.value_or("host_link", Bandwidth{});
  gpu.board_power = node.value_or("board_power", Power{});
  if (const auto sustained = node.find("sustained_share")) {
    gpu.sustained_share = share(*sustained);
    gpu.sustained_origin = origin_of(node.json(), "/sustained_share");
  }
  read_curves(node, gpu);
  if (const auto measured = node.find("measured")) gpu.calibration = read_calibration(*measured);
  gpu.unconfirmed = count_unconfirmed(node.json());
  return gpu;
}

Gpu fallback_named(const std::string& name, const Node& place) {
  const Json* entry = find_entry(EntryKind::gpu, name);
  if (!entry) place.fail(unknown_entry(EntryKind::gpu, name));
  const std::string file = "hardware/catalogue/gpus/" + name + ".json";
  return read_measured(Node{*entry, file, ""});
}

}  // namespace

Gpu read_gpu(const Node& node) {
  Gpu gpu = read_measured(node);
  std::vector<Gpu> from;
  if (const auto first = node.find("curves_from")) {
    from.push_back(fallback_named(first->as<std::string>(), *first));
  }
  for (const std::string& name : gpu.generation.curves_from) {
    from.push_back(fallback_named(name, node));
  }
  fill_from_fallbacks(gpu, from);
  return gpu;
}

}  // namespace orrery::hardware
