#pragma once
// The matrices of a rank's layers, which Muon updates one by one. Leaves out the embedding table,
// the vocabulary projection and vectors, which AdamW updates; fused matrices count as one.

#include <cstdint>
#include <vector>

#include "models/program/program.hpp"

namespace orrery::models {

/// Matrices of one size, as one rank holds them.
struct EqualMatrices {
  std::int64_t rows = 0, columns = 0, count = 0;

  std::int64_t elements() const { return rows * columns; }
};

/// Of the layers of a class: those that dense replicas share, and those of experts that have
/// replicas of their own. Ascending by elements.
struct LayerMatrices {
  std::vector<EqualMatrices> dense, experts;
};
LayerMatrices matrices_of(const Program& program, const RankClass& ranks, std::int64_t vocabulary);

std::int64_t elements_of(const std::vector<EqualMatrices>& all);

/// The matrices of the rank that multiplies most, where whole ones are dealt out to `ranks` by
/// size, forth and back.
/// Source  NVIDIA/Megatron-LM core_v0.16.0, LayerWiseDistributedOptimizer.shard_params
std::vector<EqualMatrices> of_busiest(const std::vector<EqualMatrices>& all, std::int64_t ranks);

}  // namespace orrery::models
