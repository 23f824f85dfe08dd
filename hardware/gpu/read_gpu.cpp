#include <fmt/format.h>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "hardware/gpu/fallback.hpp"
#include "hardware/gpu/gpu_power.hpp"
#include "hardware/gpu/power_limit.hpp"
#include "hardware/reading.hpp"
#include "hardware/sources.hpp"

namespace orrery::hardware {

namespace {

Generation generation_of(const Node& node) {
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
  curve.only({"share_64", "share_128", "half_length", "causal_penalty", "backward_ratio",
              "grouped_backward_ratio", "measured"});
  const auto range = curve.find("measured");
  const auto grouped = curve.find("grouped_backward_ratio");
  return {
      .share_64 = share(curve["share_64"]),
      .share_128 = share(curve["share_128"]),
      .half_length = within(curve["half_length"], 0, 1e6),
      .causal_penalty = within(curve["causal_penalty"], 0, 100),
      .backward_ratio = within(curve["backward_ratio"], 0.01, 2),
      .grouped_backward_ratio = grouped ? std::optional{within(*grouped, 0.01, 2)} : std::nullopt,
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

void read_published(const Node& shares, Gpu& gpu) {
  shares.only({"gemm", "attention", "memory_bound"});
  if (const auto gemm = shares.find("gemm")) {
    for (const auto& [format, stated] : gemm->members()) {
      const DType type = read_format(format, stated);
      if (!gpu.peak(type)) stated.fail("a share of a format without a dense_peak");
      if (gpu.gemm.count(type)) stated.fail("a share of a format that has a curve");
      gpu.published.gemm[type] = share(stated);
    }
  }
  if (const auto attention = shares.find("attention")) {
    for (const auto& [kernel, stated] : attention->members()) {
      stated.only({"share_64", "share_128"});
      if (gpu.attention.count(kernel)) stated.fail("shares of a kernel that has a curve");
      PublishedShares::Attention& read = gpu.published.attention[kernel];
      read.share_128 = share(stated["share_128"]);
      if (const auto small = stated.find("share_64")) read.share_64 = share(*small);
    }
  }
  if (const auto memory = shares.find("memory_bound")) {
    if (!gpu.memory_bound.origin.source.empty()) memory->fail("a share of what has a curve");
    gpu.published.memory = share(*memory);
  }
}

void read_power(const Node& node, Gpu& gpu) {
  gpu.board_power = node.value_or("board_power", Power{});
  gpu.power_limit = gpu.board_power;
  const auto limit = node.find("power_limit");
  if (!limit) return;
  gpu.power_limit = positive<Power>(*limit);
  if (gpu.board_power.count() <= 0) limit->fail("a limit needs the board_power that it lowers");
  if (gpu.power_limit > gpu.board_power) {
    limit->fail_expected(fmt::format("at most the board power of {}", format(gpu.board_power)));
  }
  if (const auto lowest = node.find("least_power_limit")) {
    const auto accepted = positive<Power>(*lowest);
    if (gpu.power_limit >= accepted) return;
    limit->fail_expected(
        fmt::format("at least {}, the lowest that {} accepts", format(accepted), gpu.name));
  }
  const Power least = gpu.board_power * power_states(gpu.generation).idle;
  if (gpu.power_limit >= least) return;
  limit->fail_expected(
      fmt::format("at least {}, which {} draws when it is idle", format(least), gpu.name));
}

void read_silicon(const Node& node, Gpu& gpu) {
  const auto stated = node.find("silicon");
  if (!stated) return;
  gpu.silicon = stated->as<std::string>();
  if (power_rule_of(gpu)) return;
  std::string known;
  for (const PowerRule& each : gpu.generation.power_rules) known += " " + each.silicon;
  stated->fail(fmt::format("unknown silicon '{}' of generation {}; known:{}", gpu.silicon,
                           gpu.generation.name, known));
}

/// The GPU as its file states it, without fallback curves.
Gpu read_measured(const Node& node) {
  node.only({"name",
             "aliases",
             "vendor",
             "generation",
             "dense_peak",
             "memory",
             "memory_bandwidth",
             "scale_up",
             "host_link",
             "board_power",
             "power_limit",
             "least_power_limit",
             "silicon",
             "sustained_share",
             "gemm",
             "attention",
             "memory_bound",
             "published_shares",
             "measured",
             "curves_from",
             "notes",
             "sources"});
  Gpu gpu;
  gpu.name = node["name"].as<std::string>();
  gpu.vendor = node.value_or<std::string>("vendor", "");
  gpu.generation = generation_of(node["generation"]);
  read_peaks(node["dense_peak"], gpu);
  gpu.memory = positive<Bytes>(node["memory"]);
  gpu.memory_bandwidth = positive<Bandwidth>(node["memory_bandwidth"]);
  gpu.scale_up = node.value_or("scale_up", Bandwidth{});
  gpu.host_link = node.value_or("host_link", Bandwidth{});
  read_power(node, gpu);
  read_silicon(node, gpu);
  if (const auto sustained = node.find("sustained_share")) {
    gpu.sustained_share = share(*sustained);
    gpu.sustained_origin = origin_of(node.json(), "/sustained_share");
  }
  read_curves(node, gpu);
  if (const auto published = node.find("published_shares")) read_published(*published, gpu);
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

/// The GPU as one whose share is known; nothing if its share or its board power is not.
std::optional<PowerPeer> as_peer(const Gpu& gpu) {
  const auto known = known_share(gpu);
  const auto power = power_per_flop(gpu, gpu.board_power);
  if (!known || !power) return std::nullopt;
  return PowerPeer{.gpu = gpu.name, .share = *known, .power = *power};
}

/// The peer that the rule of a GPU's silicon names.
std::optional<PowerPeer> peer_of(const Gpu& gpu, const Node& place) {
  const PowerRule* rule = power_rule_of(gpu);
  if (!rule || !rule->peer) return std::nullopt;
  const auto& [name, share, power] = *rule->peer;
  if (share && power) return PowerPeer{.gpu = name, .share = *share, .power = *power};
  std::optional<PowerPeer> peer = as_peer(fallback_named(name, place));
  if (peer && share) peer->share = *share;
  if (peer && power) peer->power = *power;
  return peer;
}

}  // namespace

Gpu read_gpu(const Node& node) {
  Gpu gpu = read_measured(node);
  CurveSources from{.fallbacks = {}, .peer = peer_of(gpu, node)};
  if (const auto first = node.find("curves_from")) {
    from.fallbacks.push_back(fallback_named(first->as<std::string>(), *first));
    if (const auto stated = as_peer(from.fallbacks.front())) from.peer = stated;
  }
  for (const std::string& name : gpu.generation.curves_from) {
    from.fallbacks.push_back(fallback_named(name, node));
  }
  fill_from_fallbacks(gpu, from);
  for (const auto& [kernel, share] : gpu.published.attention) {
    if (gpu.attention.count(kernel)) continue;
    node["published_shares"]["attention"][kernel].fail("no GPU has a curve of this kernel");
  }
  apply_power_limit(gpu);
  return gpu;
}

}  // namespace orrery::hardware
