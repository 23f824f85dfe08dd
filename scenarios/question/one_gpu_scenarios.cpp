#include "scenarios/question/one_gpu_scenarios.hpp"

#include "scenarios/scenario/scenario.hpp"

namespace orrery::scenarios {

std::vector<NamedQuestion> one_gpu_scenarios() {
  std::vector<NamedQuestion> found;
  for (const std::string& name : scenario_names()) {
    if (name.ends_with("-1gpu")) found.push_back({name, Scenario::load(name).question()});
  }
  return found;
}

}  // namespace orrery::scenarios
