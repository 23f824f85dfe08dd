#pragma once
// Small models cut in every way that the executor knows.

#include <string>
#include <utility>
#include <vector>

#include "tests/executor/world.hpp"

namespace orrery::executor {

struct Cut {
  std::string name;
  models::Model model;
  models::Plan plan;
};

template <class Change>
Cut cut(std::string name, models::Model model, Change change) {
  Cut made{std::move(name), std::move(model), small_plan()};
  change(made.plan);
  return made;
}

std::vector<Cut> cuts();
/// Three steps of the same model, batch and arithmetic on one rank, in one micro-batch.
const Outcome& reference(const Cut& cut, Arithmetic arithmetic);
/// State, losses and norms of three steps in the ring are the reference's, bit by bit.
void check_bits(const Outcome& many, const Outcome& reference);

/// Each cut against its reference: all bits in the ring; gradients to 1e-12 and three steps in
/// fp64; gradients to 1e-5 in fp32.
void check_in_ring(const std::vector<Cut>& cuts);
void check_in_fp64(const std::vector<Cut>& cuts);
void check_in_fp32(const std::vector<Cut>& cuts);

}  // namespace orrery::executor
