#pragma once
// A generation of GPUs: what a GPU takes from its relatives where its own file does not say. One
// file each in hardware/catalogue/generations/, and nothing else in the code lists them.

#include <string>
#include <string_view>
#include <vector>

namespace orrery::hardware {

struct Generation {
  std::string name = "other";
  /// Catalogue names of the GPUs whose curves stand in for those of this generation, the nearest
  /// first.
  std::vector<std::string> curves_from;
  std::string scale_up;        // whose constants a node takes that gives none
  bool host_cores = false;     // devices are cores of the host, which share its memory
  bool block_scales = false;   // its products take a scale for each block of an operand
  bool fp8_along_k = false;    // its products in fp8 read both operands along the summed dimension
  int compute_capability = 0;  // of its first GPU, times ten: 9.0 is 90; 0: not CUDA
  int multiprocessors = 0;     // of its largest common GPU; 0: not stated
};

/// Errors  `unknown generation 'x'; known: ...` (InputError)
const Generation& generation_named(std::string_view name);
/// The newest one up to a CUDA compute capability times ten; "other" where there is none.
const Generation& generation_of(int compute_capability);

}  // namespace orrery::hardware
