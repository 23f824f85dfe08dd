// Makes the bf16 operands of GEMMs in mxfp8 and nvfp4: decodes those that are stored in blocks,
// rounds the others.

#include "executor/device/cuda/kernels/fp8/block_scaled.hpp"
#include "executor/device/cuda/products/block_product.hpp"
#include "executor/device/fp8_operand.hpp"
#include "executor/device/low_precision.hpp"

namespace orrery::executor::cuda {

namespace {

using models::DType;

/// Writes the factors of BlockOperands from the tensor scales of a product's two operands.
struct WriteFactors {
  const float *a, *b;
  float keep;
  float* to;

  __device__ void operator()(std::int64_t) const {
    to[0] = *a * *b;
    to[1] = keep;
    to[2] = *b;
  }
};

/// One operand of a product, decoded at the beginning of its part of the scratch.
class Decoded {
 public:
  Decoded(const Kernel& product, const LowPrecisionOperands& reads, std::size_t i)
      : from_{*reads.matrices[i]},
        scales_{reads.scales[i]},
        format_{block_format(reads.stored)},
        way_{summed_along(product.operation->gemm(), i)} {}

  std::int64_t scratch() const { return numbers() + rounding_bytes(from_, format_, way_); }

  View write(std::byte* scratch, Stream stream) const {
    if (scales_ != nullptr) {
      decode_blocks({from_, *scales_}, way_, scratch, stream);
    } else {
      round_to_blocks(from_, format_, way_, scratch + numbers(), scratch, stream);
    }
    return {scratch, DType::bf16, from_.shape};
  }
  const float* tensor_scale(const std::byte* scratch) const {
    return scales_ != nullptr ? tensor_scale_of(*scales_)
                              : rounded_scale(from_, format_, way_, scratch + numbers());
  }

 private:
  std::int64_t numbers() const { return piece(from_.elements() * 2); }

  const View& from_;
  const View* scales_;
  BlockFormat format_;
  BlocksAlong way_;
};

}  // namespace

std::int64_t block_product_scratch(const Kernel& product) {
  const LowPrecisionOperands reads{product.reads};
  return Decoded{product, reads, 0}.scratch() + Decoded{product, reads, 1}.scratch() +
         piece(3 * sizeof(float));
}

BlockOperands block_operands(const Kernel& product, Stream stream, std::byte* scratch) {
  const LowPrecisionOperands reads{product.reads};
  const Decoded a{product, reads, 0}, b{product, reads, 1};
  std::byte* const second = scratch + a.scratch();
  BlockOperands operands{a.write(scratch, stream), b.write(second, stream)};
  if (block_format(reads.stored) == BlockFormat::mxfp8) return operands;
  auto* const factors = reinterpret_cast<float*>(second + b.scratch());
  const float keep = product.operation->gemm().accumulate ? 1 : 0;
  launch_for_each(1, stream,
                  WriteFactors{a.tensor_scale(scratch), b.tensor_scale(second), keep, factors});
  operands.factors = factors;
  return operands;
}

}  // namespace orrery::executor::cuda
