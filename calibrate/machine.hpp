#pragma once
// The machine and the software that a measurement was made with, so that it can be repeated.

#include <string>

#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::calibrate {

struct Machine {
  std::string processor;  // "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz"
  int cores = 1;          // that this process may use
  Bytes memory{};         // of the machine
  std::string system;     // "Linux 6.1.0"
  std::string compiler;   // "gcc 12.2.0"
  std::string library;    // the device's description: "OpenBLAS 0.3.21 ..."
  std::string date;       // "2026-11-21"
};

/// Cores that this process may use.
int usable_cores();

/// Describes this machine; a name that cannot be found out is "unknown".
Machine this_machine(const std::string& device_description);

/// One line for `sources`: "calibrated 2026-11-21 on PROCESSOR, 2 cores; LIBRARY; ...".
std::string source_line(const Machine& machine);
Json to_json(const Machine& machine);

}  // namespace orrery::calibrate
