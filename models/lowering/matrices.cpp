#include "models/lowering/matrices.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace orrery::models {

namespace {

/// Counts by elements, rows and columns.
using Counts = std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t>;

std::vector<EqualMatrices> as_list(const Counts& counts) {
  std::vector<EqualMatrices> all;
  for (const auto& [size, count] : counts) {
    all.push_back({.rows = std::get<1>(size), .columns = std::get<2>(size), .count = count});
  }
  return all;
}

bool is_matrix(const Operand& each, std::int64_t vocabulary) {
  const bool trained = each.role == Role::parameter && !each.frozen;
  return trained && each.shape[1] > 1 && each.shape[2] > 1 && each.uncut[1] != vocabulary &&
         each.uncut[2] != vocabulary;
}

/// FLOPs of one step of the iteration, up to a factor.
double work_of(const EqualMatrices& one) {
  const double m = static_cast<double>(std::min(one.rows, one.columns));
  const double n = static_cast<double>(std::max(one.rows, one.columns));
  return m * m * (2 * n + m);
}

}  // namespace

LayerMatrices matrices_of(const Program& program, const RankClass& ranks, std::int64_t vocabulary) {
  Counts dense, experts;
  for (const std::uint32_t chunk : ranks.chunks) {
    for (const Invocation& run : program.phases[program.chunks[chunk].forward].invocations) {
      const LayerKind* const kind = program.use_of(run.block).kind;
      if (kind == nullptr || kind->part == ModelPart::embedding) continue;
      for (const Operand& each : program.blocks[run.block].operands) {
        if (!is_matrix(each, vocabulary)) continue;
        const bool apart = kind->expert_parameters > 0 && each.view == MeshView::experts;
        const EqualMatrices size{.rows = each.shape[1], .columns = each.shape[2]};
        (apart ? experts : dense)[{size.elements(), size.rows, size.columns}] +=
            each.shape[0] * run.count;
      }
    }
  }
  return {.dense = as_list(dense), .experts = as_list(experts)};
}

std::int64_t elements_of(const std::vector<EqualMatrices>& all) {
  std::int64_t sum = 0;
  for (const EqualMatrices& each : all) sum += each.elements() * each.count;
  return sum;
}

std::vector<EqualMatrices> of_busiest(const std::vector<EqualMatrices>& all, std::int64_t ranks) {
  if (ranks == 1) return all;
  // Two rounds, forth and back, hand every rank two matrices; what is left of a size goes on where
  // the one before it ended.
  std::vector<Counts> hands(static_cast<std::size_t>(ranks));
  std::vector<double> work(hands.size(), 0);
  std::int64_t at = 0;
  for (const EqualMatrices& each : all) {
    for (std::int64_t i = 0; i < each.count; ++i, at = (at + 1) % (2 * ranks)) {
      const auto rank = static_cast<std::size_t>(at < ranks ? at : 2 * ranks - 1 - at);
      ++hands[rank][{each.elements(), each.rows, each.columns}];
      work[rank] += work_of(each);
    }
  }
  return as_list(hands[static_cast<std::size_t>(std::ranges::max_element(work) - work.begin())]);
}

}  // namespace orrery::models
