#pragma once
// Several evaluations of one step with random launch delays: launch_delays.hpp.

#include "models/prediction/network/network.hpp"

namespace orrery::models {

/// Evaluates each phase with traffic and with every transfer alone, and sets found.phases,
/// `contention` and, where other jobs share links, `from_jobs`. Returns the times of the phase
/// whose step is nearest to the mean. traffic  made with Folding::always
NetworkTimes evaluate_phases(const LaunchPhases& asked, const Traffic& traffic,
                             const NetworkSite& site, NetworkAnswer& found);

}  // namespace orrery::models
