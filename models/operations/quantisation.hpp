#pragma once
// How the operands of products in few bits are made. The pass over a tensor is one operation, of
// which memory traffic is all that it costs: it reads 16 bits and writes each copy with its scales.
// Blocks run along the dimension that a product sums over, so where scales are of blocks the
// forward product and the weight gradient read different copies of an activation, the input
// gradient and the weight gradient different copies of the output's gradient. Left out: casting
// weights, which is once a step; the random Hadamard transform of nvfp4's weight gradients, which
// is done on the tile that is quantised.

#include <cstdint>
#include <string_view>

#include "hardware/dtype.hpp"
#include "models/plan/plan.hpp"
#include "models/program/sharding.hpp"

namespace orrery::models {

struct Quantisation {
  Precision precision = Precision::fp8;
  hardware::DType dtype = hardware::DType::fp8;
  std::int64_t block = 0;  // numbers that share a scale; 0: the tensor
  hardware::DType scale = hardware::DType::fp32;
  bool finds_largest = false;  // a pass of its own before: the tensor's scale is of its own numbers
  bool in_hardware = false;    // the matrix units apply the scales

  /// A copy by rows and one by columns?
  bool both_ways() const { return block > 0; }
};

/// Nothing for precisions that multiply what is stored.
///   fp8          one scale, of earlier steps' largest numbers (delayed scaling)
///   fp8-current  one scale, of this tensor's
///   fp8-block    an fp32 scale for 1 x 128 numbers
///   mxfp8        a scale of 8 bits for 32 numbers
///   nvfp4        a scale of 8 bits for 16 numbers, and one for the tensor
/// Source  NVIDIA Transformer Engine: DelayedScaling, Float8CurrentScaling, Float8BlockScaling,
///         MXFP8BlockScaling and NVFP4BlockScaling of common/recipe; OCP Microscaling Formats 1.0
const Quantisation* quantisation_of(Precision precision);

/// What products are multiplied in: the precision's own format, or the one that activations are
/// stored in where the stack decodes blocks (RunnablePlans::decodes_blocks).
hardware::DType multiplied_in(Precision precision, bool decodes_blocks);

/// How the scales of a tensor are cut, of which `block` columns share one.
Sharding of_scales(Sharding tensor, std::int64_t block);

}  // namespace orrery::models
