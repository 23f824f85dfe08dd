#include "models/operations/quantisation.hpp"

#include <algorithm>
#include <array>

#include "models/plan/precision_formats.hpp"

namespace orrery::models {

namespace {

using hardware::DType;

constexpr std::array<Quantisation, 5> quantisations{{
    {Precision::fp8, DType::fp8},
    {Precision::fp8_current, DType::fp8, 0, DType::fp32, true},
    {Precision::fp8_block, DType::fp8, 128, DType::fp32},
    {Precision::mxfp8, DType::fp8, 32, DType::uint8, false, true},
    {Precision::nvfp4, DType::fp4, 16, DType::uint8, true, true},
}};

}  // namespace

const Quantisation* quantisation_of(Precision precision) {
  const auto found = std::ranges::find(quantisations, precision, &Quantisation::precision);
  return found == quantisations.end() ? nullptr : &*found;
}

DType multiplied_in(Precision precision, bool decodes_blocks) {
  const Quantisation* how = quantisation_of(precision);
  const bool decoded = decodes_blocks && how != nullptr && how->in_hardware;
  return decoded ? storage_dtype(precision) : compute_dtype(precision);
}

Sharding of_scales(Sharding tensor, std::int64_t block) {
  for (auto& each : tensor.cuts) {
    if (!each || each->dimension != Dimension::columns) continue;
    each->unit = static_cast<std::uint16_t>(std::max<std::int64_t>(1, each->unit / block));
  }
  for (std::int64_t& each : tensor.column_groups) each = (each + block - 1) / block;
  return tensor;
}

}  // namespace orrery::models
