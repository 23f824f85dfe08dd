#include "models/evaluation/verify.hpp"

#include <chrono>
#include <vector>

#include "models/evaluation/events.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

std::string unequal(const std::string& what, Time a, Time b) {
  if (a == b) return {};
  return what + ": " + std::to_string(a.count()) + " and " + std::to_string(b.count()) + " ps";
}

std::string unequal(const std::string& what, const std::vector<Time>& a,
                    const std::vector<Time>& b) {
  if (a.size() != b.size()) return what + ": different numbers of them";
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::string found = unequal(what + " " + std::to_string(i), a[i], b[i]);
    if (!found.empty()) return found;
  }
  return {};
}

std::vector<Time> lanes_of(const QueueTimes& times) {
  return {times.free.begin(), times.free.end()};
}

}  // namespace

std::string difference(const StepTimes& a, const StepTimes& b) {
  std::string found = unequal("step", a.step, b.step);
  if (!found.empty()) return found;
  if (a.ranks.size() != b.ranks.size()) return "different numbers of ranks";
  for (std::size_t r = 0; r < a.ranks.size(); ++r) {
    found =
        unequal("rank " + std::to_string(r) + " queue", lanes_of(a.ranks[r]), lanes_of(b.ranks[r]));
    if (!found.empty()) return found;
  }
  if (a.transfers.size() != b.transfers.size()) return "different numbers of channels";
  for (std::size_t c = 0; c < a.transfers.size(); ++c) {
    found = unequal("channel " + std::to_string(c) + " transfer", a.transfers[c], b.transfers[c]);
    if (!found.empty()) return found;
  }
  return unequal("start of collective", a.collective_starts, b.collective_starts);
}

Verification verify(const PricedProgram& priced, const StepTimes& times) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Verification result;
  const StepTimes again = evaluate_events(priced, result.events);
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  const std::string differs = difference(times, again);
  if (!differs.empty()) throw ContractError{"maps and events differ: " + differs};
  return result;
}

}  // namespace orrery::models
