#include "hardware/gpu/generation.hpp"

#include <map>

#include "hardware/entries.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

Generation read_generation(const Node& node) {
  node.only({"name", "curves_from", "scale_up", "host_cores", "block_scales", "fp8_along_k",
             "compute_capability", "multiprocessors", "unaligned_attention", "power", "power_rules",
             "announced", "sources"});
  Generation read;
  read.name = node["name"].as<std::string>();
  for (const Node& each : node["curves_from"].elements()) {
    read.curves_from.push_back(each.as<std::string>());
  }
  if (const auto rules = node.find("power_rules")) read.power_rules = read_power_rules(*rules);
  read.scale_up = node["scale_up"].as<std::string>();
  read.host_cores = node.value_or("host_cores", false);
  read.block_scales = node.value_or("block_scales", false);
  read.fp8_along_k = node.value_or("fp8_along_k", false);
  read.compute_capability = node.value_or("compute_capability", 0);
  read.multiprocessors = node.value_or("multiprocessors", 0);
  read.unaligned_attention = node.value_or("unaligned_attention", 1.0);
  if (const auto year = node.find("announced")) {
    read.announced = static_cast<int>(year->integer(1990, 2100));
  }
  return read;
}

using Generations = std::map<std::string, Generation, std::less<>>;

const Generations& all_generations() {
  static const Generations all = [] {
    Generations read;
    for (const std::string& name : entry_names(EntryKind::generation)) {
      read.emplace(name, read_generation(entry_node(EntryKind::generation, name)));
    }
    return read;
  }();
  return all;
}

}  // namespace

const Generation& generation_named(std::string_view name) {
  const auto found = all_generations().find(name);
  if (found == all_generations().end())
    throw InputError{unknown_entry(EntryKind::generation, name)};
  return found->second;
}

const Generation& generation_of(int compute_capability) {
  const Generation* newest = &generation_named("other");
  for (const auto& [name, each] : all_generations()) {
    const bool reached =
        each.compute_capability > 0 && each.compute_capability <= compute_capability;
    if (reached && each.compute_capability > newest->compute_capability) newest = &each;
  }
  return *newest;
}

}  // namespace orrery::hardware
