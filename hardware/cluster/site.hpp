#pragma once
// Correction factors of one installation for every software stack that runs there: how its network,
// hosts and clocks differ from the usual. A cluster without a site has neutral factors. Leaves out
// what a stack itself decides.

#include <string>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::hardware {

struct Site {
  std::string name;
  double tensor = 1;   // exposed tensor-parallel time over the usual
  double network = 1;  // share of the network that gradients and dispatches reach, over the usual
  Time jitter{};       // per rank and collective, added to the stack's
  Time step{};         // per step, added to the stack's
  double clock = 1;    // GEMM rate over the usual
};

/// Errors  a factor outside (0.1, 10), an unknown key: InputError
Site read_site(const Node& node);

}  // namespace orrery::hardware
