#include "scenarios/fitting/pattern_search.hpp"

namespace orrery::scenarios {

namespace {

/// One search; remembers its best point.
class Walk {
 public:
  Walk(std::size_t coordinates, const GridFunction& function)
      : function_{function}, best_(coordinates, 0) {}

  GridMinimum run() {
    const auto start = function_(best_);
    if (!start) return {best_, false};
    lowest_ = *start;
    for (int stride = 16; stride >= 1; stride /= 2) {
      while (sweep(stride) || trade(stride)) {
      }
      if (stopped_) break;
    }
    return {best_, !stopped_};
  }

 private:
  /// Takes the point if it is better.
  bool better(const GridPoint& point) {
    const auto value = function_(point);
    if (!value) stopped_ = true;
    if (!value || !(*value < lowest_)) return false;
    lowest_ = *value;
    best_ = point;
    return true;
  }

  bool step(std::size_t coordinate, int by) {
    GridPoint point = best_;
    point[coordinate] += by;
    return !stopped_ && better(point);
  }

  /// Every coordinate both ways, then once more along the way of the whole sweep.
  bool sweep(int stride) {
    const GridPoint before = best_;
    for (std::size_t i = 0; i < best_.size(); ++i) {
      if (!step(i, stride)) step(i, -stride);
    }
    if (stopped_ || best_ == before) return false;
    GridPoint further = best_;
    for (std::size_t i = 0; i < best_.size(); ++i) further[i] += best_[i] - before[i];
    better(further);
    return !stopped_;
  }

  /// The first pair of coordinates that is better one up, the other down.
  bool trade(int stride) {
    for (std::size_t i = 0; i < best_.size(); ++i) {
      for (std::size_t j = 0; j < best_.size() && !stopped_; ++j) {
        GridPoint point = best_;
        point[i] += stride;
        point[j] -= stride;
        if (i != j && better(point)) return true;
      }
    }
    return false;
  }

  const GridFunction& function_;
  GridPoint best_;
  double lowest_ = 0;
  bool stopped_ = false;
};

}  // namespace

GridMinimum minimum_on_grid(std::size_t coordinates, const GridFunction& function) {
  return Walk{coordinates, function}.run();
}

}  // namespace orrery::scenarios
