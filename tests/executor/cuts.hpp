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

}  // namespace orrery::executor
