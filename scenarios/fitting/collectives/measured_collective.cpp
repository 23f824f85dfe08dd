#include "scenarios/fitting/collectives/measured_collective.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/fitting/words.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

int required_count(const Row& row, const char* column) {
  const auto value = row.integer(column);
  constexpr std::int64_t most = 10'000'000;
  if (!value || *value < 1 || *value > most) {
    row.fail_expected(column, "a count from 1 to 10000000");
  }
  return static_cast<int>(*value);
}

std::optional<models::Collective> collective_named(const std::string& word) {
  if (word == "alltoall") return models::Collective::all_to_all;
  if (word == "sendrecv") return models::Collective::send_receive;
  return value_of(models::collective_words, word);
}

/// "8x ConnectX-7 400G" of "8x ConnectX-7 400G (bonded)": the brackets describe the run, not the
/// NIC.
std::string without_brackets(const std::string& words) {
  return words.substr(0, words.find(" ("));
}

MeasuredCollective read_row(const Row& row, const char* name) {
  MeasuredCollective read;
  read.id = cell_text(row, name);
  read.source = cell_text(row, "source");
  read.variant = cell_text(row, "variant");
  read.gpu = cell_text(row, "gpu");
  read.link = cell_text(row, "link");
  read.nic = without_brackets(cell_text(row, "nic"));
  read.algorithm = cell_text(row, "algo");
  read.protocol = cell_text(row, "proto");
  read.version = cell_text(row, "nccl_version");
  read.set_aside = cell_text(row, "set_aside");
  read.collective = collective_named(cell_text(row, "collective"));
  if (!read.collective)
    row.fail_expected(
        "collective",
        "all_reduce, all_gather, reduce_scatter, broadcast, reduce, alltoall or sendrecv");
  read.gpus = required_count(row, "gpus");
  read.nodes = required_count(row, "nodes");
  const auto bytes = row.integer("bytes");
  if (!bytes || *bytes < 0) row.fail_expected("bytes", "a size of at least 0");
  read.size = Bytes{*bytes};
  read.in_place = row.integer("in_place").value_or(0) != 0;
  read.seconds = stated_seconds(row);
  return read;
}

}  // namespace

int MeasuredCollective::domains() const {
  if (link.find("NVL72") == std::string::npos) return nodes;
  if (link.find("x20") != std::string::npos) return 20;
  const bool two =
      link.find("x2") != std::string::npos || link.find("2 racks") != std::string::npos;
  return two ? 2 : 1;
}

bool holds_collectives(const orrery::Table& table) {
  return table.has("collective") && table.has("bytes") && table.has("time_us") && table.has("gpus");
}

std::vector<MeasuredCollective> read_collectives(const orrery::Table& table) {
  return read_measured<MeasuredCollective>(
      table, {"collective", "gpu", "gpus", "nodes", "link", "bytes", "time_us"}, read_row);
}

std::string identity_of(const MeasuredCollective& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}", curve_of(row), row.nic, row.algorithm, row.version,
                     row.in_place, row.size.count());
}

std::string curve_of(const MeasuredCollective& row) {
  return fmt::format("{}|{}|{}|{}|{}", row.collective ? models::name(*row.collective) : "", row.gpu,
                     row.link, row.gpus, row.nodes);
}

std::string run_of(const MeasuredCollective& row) {
  return fmt::format("{}|{}|{}|{}|{}|{}|{}|{}", curve_of(row), row.source, row.variant, row.nic,
                     row.algorithm, row.protocol, row.version, row.in_place);
}

std::string system_of(const MeasuredCollective& row) {
  if (row.one_domain()) return row.gpu;
  const bool point_to_point = row.collective == models::Collective::all_to_all ||
                              row.collective == models::Collective::send_receive;
  if (!point_to_point) return fmt::format("{}|{}|reductions and gathers", row.gpu, row.link);
  return fmt::format("{}|{}|{} {}|all-to-all and p2p", row.gpu, row.link, row.source, row.variant);
}

models::GroupShape shape_of(const MeasuredCollective& row) {
  const int domains = std::min(row.domains(), row.gpus);
  if (row.collective == models::Collective::send_receive) {
    const int ends = std::min(2, domains);
    return {.ranks = std::min(2, row.gpus), .nodes = ends, .ranks_per_node = ends == 1 ? 2 : 1};
  }
  return {.ranks = row.gpus, .nodes = domains, .ranks_per_node = std::max(1, row.gpus / domains)};
}

}  // namespace orrery::scenarios
