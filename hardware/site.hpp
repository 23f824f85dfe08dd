#pragma once
// What a place does to every stack that runs there: how its network, hosts and clocks differ from
// the usual. A cluster without a site has the neutral one. Leaves out what a stack itself decides.

#include <string>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

struct Site {
  std::string name;
  double tensor = 1;   // tensor-parallel time that others wait for, over the usual
  double network = 1;  // share of the network that data-parallel traffic reaches, over the usual
  Time jitter{};       // per rank and collective, on top of the stack's
  Time step{};         // per step, on top of the stack's
  double clock = 1;    // rate of matrix products over the usual
};

/// Errors  a factor outside (0.1, 10), an unknown key: InputError
Site read_site(const Node& node);

}  // namespace orrery::hardware
