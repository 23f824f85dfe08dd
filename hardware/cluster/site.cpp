#include "hardware/cluster/site.hpp"

#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

double factor(const Node& node, std::string_view key) {
  const auto given = node.find(key);
  return given ? within(*given, 0.1, 10) : 1;
}

}  // namespace

Site read_site(const Node& node) {
  node.only(
      {"name", "found_by", "tensor", "network", "jitter", "step", "clock", "notes", "sources"});
  return {.name = node.value_or<std::string>("name", "site"),
          .tensor = factor(node, "tensor"),
          .network = factor(node, "network"),
          .jitter = node.value_or("jitter", Time{}),
          .step = node.value_or("step", Time{}),
          .clock = factor(node, "clock")};
}

}  // namespace orrery::hardware
