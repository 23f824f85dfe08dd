#include "scenarios/fitting/profile/number_prior.hpp"

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>

namespace orrery::scenarios {

namespace {

constexpr double half_life = 3;  // years
constexpr double weight_of_usual = 0.5;

double weight_of(const models::Software& stack, const models::Software& relative) {
  constexpr double by_kinship[] = {1, 0.5, 0.1};
  const double apart = std::abs(stack.year - relative.year);
  return by_kinship[static_cast<std::size_t>(kinship_of(stack, relative))] *
         std::exp2(-apart / half_life);
}

/// The root of a shipped profile's inheritance chain; for other profiles their own name.
const std::string& root_of(const models::Software& software) {
  static const auto roots = [] {
    std::map<std::string, std::string> read;
    for (const std::string& name : models::software_names()) {
      const Document written = Document::from(models::written_profile(name), name);
      read.emplace(name, models::resolve_profile(written.root(), std::nullopt).line.back());
    }
    return read;
  }();
  const auto shipped = roots.find(software.name);
  return shipped == roots.end() ? software.name : shipped->second;
}

}  // namespace

Kinship kinship_of(const models::Software& a, const models::Software& b) {
  if (root_of(a) == root_of(b)) return Kinship::family;
  return !a.lineage.empty() && a.lineage == b.lineage ? Kinship::lineage : Kinship::none;
}

Eigen::VectorXd prior_of(const models::Software& stack, const std::vector<Relative>& relatives) {
  Eigen::VectorXd prior = coordinates_of(stack);
  for (std::size_t i = 0; i < profile_numbers().size(); ++i) {
    const ProfileNumber& number = profile_numbers()[i];
    if (!number.matters(stack)) continue;
    double sum = weight_of_usual * number.coordinate(number.usual);
    double weights = weight_of_usual;
    for (const Relative& each : relatives) {
      if (!number.matters(*each.stack) || !number.alike(stack, *each.stack)) continue;
      const double weight = weight_of(stack, *each.stack);
      sum += weight * each.coordinates[i];
      weights += weight;
    }
    prior[i] = sum / weights;
  }
  return prior;
}

}  // namespace orrery::scenarios
