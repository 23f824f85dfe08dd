#pragma once
// How the operands of GEMMs in 8 and 4 bits are quantised. The pass over a tensor is one
// memory-bound operation: it reads 16 bits and writes each copy with its scales. The numbers that
// share a block scale lie along the dimension that a GEMM sums over; so with block scales the
// forward GEMM and the weight gradient read different copies of an activation, and the input
// gradient and the weight gradient different copies of the output gradient. Under nvfp4 the copies
// that weight gradients read may go through a random Hadamard transform: in the same pass, where it
// costs nothing here, or in a second pass that reads the tensor again (`hadamard_pass`). Left out:
// casting weights, which is done once per step.

#include <cstdint>
#include <string_view>

#include "hardware/dtype.hpp"
#include "models/plan/plan.hpp"
#include "models/program/sharding.hpp"

namespace orrery::models {

/// One quantisation recipe: formats of numbers and scales, and how scales are found and applied.
struct Quantisation {
  Precision precision = Precision::fp8;
  hardware::DType dtype = hardware::DType::fp8;
  std::int64_t block = 0;  // numbers that share a scale; 0: the whole tensor
  hardware::DType scale = hardware::DType::fp32;
  bool finds_largest = false;  // the tensor's own amax sets its scale: a separate pass finds it
  bool in_hardware = false;    // the matrix units apply the scales

  /// Does a tensor need two copies, with blocks along rows and along columns?
  bool both_ways() const { return block > 0; }
};

/// The recipe of a precision; null for precisions whose GEMMs read the storage format.
///   fp8          one scale, from the amax of earlier steps (delayed scaling)
///   fp8-current  one scale, from this tensor's amax
///   fp8-block    an fp32 scale for 1 x 128 numbers
///   mxfp8        a scale of 8 bits for 32 numbers
///   nvfp4        a scale of 8 bits for 16 numbers, and one for the tensor
/// Source  NVIDIA Transformer Engine: DelayedScaling, Float8CurrentScaling, Float8BlockScaling,
///         MXFP8BlockScaling and NVFP4BlockScaling of common/recipe; OCP Microscaling Formats 1.0
const Quantisation* quantisation_of(Precision precision);

/// Format of the GEMMs' arithmetic: the precision's own, or the storage format of activations where
/// the stack emulates block formats (RunnablePlans::decodes_blocks).
hardware::DType multiplied_in(Precision precision, bool decodes_blocks);

/// Sharding of a tensor's scales, one for every `block` columns.
Sharding of_scales(Sharding tensor, std::int64_t block);

}  // namespace orrery::models
