#pragma once
// Forward and backward of one attention on operands of the device, by our own kernels or by those
// that are chosen for it, held to the formula in fp64.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "executor/device/cuda/stream.hpp"
#include "executor/device/device.hpp"
#include "tests/executor/device/cuda/attention_reference.hpp"
#include "tests/executor/device/cuda/device_array.hpp"

namespace orrery::executor::cuda {

/// How an attention is computed: the three functions of flash.hpp, or others in their place.
struct Way {
  std::function<std::string(const models::Operation&)> refusal;
  std::function<std::int64_t(const models::Operation&)> scratch_bytes;
  std::function<void(const Kernel&, Stream, std::byte*)> launch;
};
Way own_way();

/// Numbers in the device's memory, in a format of their own.
class AttentionOperand {
 public:
  AttentionOperand(models::DType format, std::array<std::int64_t, 3> shape, const Numbers& values);
  /// All bits set: NaN, for what is overwritten.
  AttentionOperand(models::DType format, std::array<std::int64_t, 3> shape);

  View view() { return {bytes_.data(), format_, shape_}; }
  Numbers values() const;
  bool operator==(const AttentionOperand& other) const {
    return bytes_.values() == other.bytes_.values();
  }

 private:
  models::DType format_;
  std::array<std::int64_t, 3> shape_;
  DeviceArray<std::byte> bytes_;
};

/// As a Program would have them.
class AttentionTrial {
 public:
  AttentionTrial(const Way& way, const models::AttentionShape& shape, models::DType format,
                 const Numbers& qkv, const Numbers& d_out);

  AttentionResults results() const { return {out_.values(), lse_.values(), d_qkv_.values()}; }
  bool operator==(const AttentionTrial& other) const {
    return out_ == other.out_ && lse_ == other.lse_ && d_qkv_ == other.d_qkv_;
  }

 private:
  void launch(models::OpKind kind, const std::vector<View>& reads, const std::vector<View>& writes);

  Way way_;
  models::AttentionShape shape_;
  models::DType format_;
  std::int64_t rows_;
  AttentionOperand qkv_, d_out_, out_, lse_, d_qkv_;
};

/// Norm of the difference over the norm.
double error_of(const Numbers& found, const Numbers& expected);

/// Tolerances are of whole tensors, by norm: a 16-bit format of p bits rounds weights, their
/// gradients and results by 2^-p of each at most, one independently of the other, so that the error
/// stays below 2^-p of the tensor, and gradients, made from rounded outputs, below twice that.
void check_against_formula(const Way& way, const models::AttentionShape& shape,
                           models::DType format);

}  // namespace orrery::executor::cuda
