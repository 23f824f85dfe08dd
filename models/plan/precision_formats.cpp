#include "models/plan/precision_formats.hpp"

#include <array>

#include "sim/errors.hpp"

namespace orrery::models {
namespace {

struct PrecisionFormats {
  Precision precision;
  hardware::DType compute, storage, state;
};

using hardware::DType;
constexpr std::array<PrecisionFormats, 10> formats{{
    {Precision::fp32, DType::fp32, DType::fp32, DType::fp32},
    {Precision::tf32, DType::tf32, DType::fp32, DType::fp32},
    {Precision::fp16, DType::fp16, DType::fp16, DType::fp32},
    {Precision::bf16, DType::bf16, DType::bf16, DType::fp32},
    {Precision::fp8, DType::fp8, DType::bf16, DType::fp32},
    {Precision::fp64, DType::fp64, DType::fp64, DType::fp64},
    {Precision::fp8_current, DType::fp8, DType::bf16, DType::fp32},
    {Precision::fp8_block, DType::fp8, DType::bf16, DType::fp32},
    {Precision::mxfp8, DType::fp8, DType::bf16, DType::fp32},
    {Precision::nvfp4, DType::fp4, DType::bf16, DType::fp32},
}};

const PrecisionFormats& formats_of(Precision precision) {
  for (const PrecisionFormats& each : formats) {
    if (each.precision == precision) return each;
  }
  throw ContractError{"a precision has no formats"};
}

}  // namespace

DType compute_dtype(Precision precision) {
  return formats_of(precision).compute;
}
DType storage_dtype(Precision precision) {
  return formats_of(precision).storage;
}
DType state_dtype(Precision precision) {
  return formats_of(precision).state;
}

}  // namespace orrery::models
