#include "scenarios/scenario/scenario_request.hpp"

namespace orrery::scenarios {

Scenario ScenarioRequest::load() const {
  Scenario loaded = Scenario::load(scenario, parts);
  return changes.empty() ? loaded : loaded.replace(changes);
}

}  // namespace orrery::scenarios
