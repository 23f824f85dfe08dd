#pragma once
// The least of a function on a grid, by moving one coordinate at a time and then along the way that
// it went: needs no derivative, and gives the same point on every run.

#include <functional>
#include <optional>
#include <vector>

namespace orrery::scenarios {

/// A point counts strides from the start, by coordinate.
using GridPoint = std::vector<int>;

/// What is minimised; nothing says stop. Points outside its range are infinite.
using GridFunction = std::function<std::optional<double>(const GridPoint&)>;

struct GridMinimum {
  GridPoint point;
  bool complete = true;  // false: told to stop, the best so far
};

/// Hooke & Jeeves 1961, "Direct search solution of numerical and statistical problems": strides of
/// 16, 8, 4, 2 and 1; each is halved where no neighbour is better. Where one coordinate trades off
/// with another, no step along one alone goes down: then pairs are tried against each other.
GridMinimum minimum_on_grid(std::size_t coordinates, const GridFunction& function);

}  // namespace orrery::scenarios
