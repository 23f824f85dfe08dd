#pragma once
// A generation of GPUs: defaults and fallback curves for a GPU whose own file does not have them.
// Rows of hardware/catalogue/generations.json; the code has no other list of them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu/power_rule.hpp"

namespace orrery::hardware {

struct Generation {
  std::string name = "other";
  /// Catalogue names of the GPUs whose curves are the fallback for this generation, nearest first.
  std::vector<std::string> curves_from;
  std::vector<PowerRule> power_rules;  // by family of silicon, that of most of its GPUs first
  std::string scale_up;                // whose constants are the default for a node
  bool host_cores = false;             // devices are cores of the host, which share its memory
  bool block_scales = false;           // its GEMMs take one scale per block of an operand
  bool fp8_along_k = false;            // its fp8 GEMMs need both operands K-contiguous
  int compute_capability = 0;          // of its first GPU, times ten: 9.0 is 90; 0: not CUDA
  int multiprocessors = 0;             // of its largest common GPU; 0: not stated
  /// GEMMs of attention in 16 bits over what their curve says, where the head size is no multiple
  /// of 16 bytes, which tensor cores need of every leading dimension.
  double unaligned_attention = 1;
  std::optional<int> announced{};  // year: software of an earlier one does not run on it
};

/// Errors  `unknown generation 'x'; known: ...` (InputError)
const Generation& generation_named(std::string_view name);
/// The newest generation up to this CUDA compute capability times ten; "other" if there is none.
const Generation& generation_of(int compute_capability);

}  // namespace orrery::hardware
