#include "calibrate/fit/minimise.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using Place = std::vector<double>;

struct Corner {
  Place at;
  double cost = 0;
};

/// from + factor * (to - from)
Place along(const Place& from, const Place& to, double factor) {
  Place place(from.size());
  for (std::size_t i = 0; i < place.size(); ++i) place[i] = from[i] + factor * (to[i] - from[i]);
  return place;
}

Place centre_of(const std::vector<Corner>& simplex) {
  Place centre(simplex.front().at.size());
  for (std::size_t c = 0; c + 1 < simplex.size(); ++c) {
    for (std::size_t i = 0; i < centre.size(); ++i) centre[i] += simplex[c].at[i];
  }
  for (double& each : centre) each /= static_cast<double>(simplex.size() - 1);
  return centre;
}

}  // namespace

std::vector<double> minimise(const std::function<double(const std::vector<double>&)>& cost,
                             std::vector<double> start, double step) {
  ensure(!start.empty(), "there is something to vary");
  std::vector<Corner> simplex{{start, cost(start)}};
  for (std::size_t i = 0; i < start.size(); ++i) {
    Place corner = start;
    corner[i] += step;
    simplex.push_back({corner, cost(corner)});
  }
  const auto lower = [](const Corner& a, const Corner& b) { return a.cost < b.cost; };
  for (int round = 0; round < 400; ++round) {
    std::sort(simplex.begin(), simplex.end(), lower);
    Corner& worst = simplex.back();
    if (worst.cost - simplex.front().cost <= 1e-12 * (1 + std::abs(simplex.front().cost))) break;
    const Place centre = centre_of(simplex);
    const auto tried = [&](double factor) {
      const Place place = along(centre, worst.at, factor);
      return Corner{place, cost(place)};
    };
    const Corner mirrored = tried(-1);
    if (mirrored.cost < simplex.front().cost) {
      const Corner further = tried(-2);
      worst = further.cost < mirrored.cost ? further : mirrored;
    } else if (mirrored.cost < simplex[simplex.size() - 2].cost) {
      worst = mirrored;
    } else if (const Corner inside = tried(0.5); inside.cost < worst.cost) {
      worst = inside;
    } else {
      for (std::size_t c = 1; c < simplex.size(); ++c) {
        simplex[c].at = along(simplex.front().at, simplex[c].at, 0.5);
        simplex[c].cost = cost(simplex[c].at);
      }
    }
  }
  return std::min_element(simplex.begin(), simplex.end(), lower)->at;
}

double robust(double log_residual) {
  constexpr double corner = 0.1;
  const double size = std::abs(log_residual);
  return size <= corner ? size * size / 2 : corner * (size - corner / 2);
}

double median_of(std::vector<double> values) {
  ensure(!values.empty(), "a median is of something");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace orrery::calibrate
