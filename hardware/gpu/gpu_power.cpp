#include "hardware/gpu/gpu_power.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "hardware/entries.hpp"
#include "hardware/gpu/kernel_rates.hpp"
#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

PowerStates read_states(const Node& node) {
  node.only({"idle", "waiting", "memory_bound", "math"});
  const PowerStates read{.idle = share(node["idle"]),
                         .waiting = share(node["waiting"]),
                         .memory_bound = share(node["memory_bound"]),
                         .math = share(node["math"])};
  const bool ascending = read.idle <= read.waiting && read.waiting <= read.memory_bound &&
                         read.memory_bound <= read.math;
  if (!ascending) node.fail("idle, waiting, memory_bound and math must ascend");
  return read;
}

std::map<std::string, PowerStates, std::less<>> all_states() {
  std::map<std::string, PowerStates, std::less<>> read;
  for (const std::string& name : entry_names(EntryKind::generation)) {
    read.emplace(name, read_states(entry_node(EntryKind::generation, name)["power"]));
  }
  return read;
}

}  // namespace

const PowerStates& power_states(const Generation& generation) {
  static const auto all = all_states();
  return all.at(generation.name);
}

PowerDraw power_draw(const Gpu& gpu) {
  const PowerStates& states = power_states(gpu.generation);
  const auto drawn = [&](double share) {
    return std::min(gpu.board_power * share, gpu.power_limit);
  };
  return {.idle = drawn(states.idle),
          .waiting = drawn(states.waiting),
          .memory_bound = drawn(states.memory_bound),
          .math = drawn(states.math)};
}

Power host_share(const NodeType& node) {
  return node.host_power * (kernel_rate("host_power", "", node.gpu).factor / node.gpus);
}

}  // namespace orrery::hardware
