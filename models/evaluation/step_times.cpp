#include "models/evaluation/step_times.hpp"

#include <algorithm>

namespace orrery::models {

Time QueueTimes::last() const {
  return *std::ranges::max_element(free);
}

Time StepTimes::scheduled() const {
  Time last{};
  for (const QueueTimes& rank : ranks) last = std::max(last, rank.last());
  for (const std::vector<Time>& channel : transfers) {
    if (!channel.empty()) last = std::max(last, channel.back());  // they end in order
  }
  return last;
}

}  // namespace orrery::models
