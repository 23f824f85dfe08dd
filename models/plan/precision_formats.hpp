#pragma once
// The number formats that each precision stands for. Their scales are in
// models/operations/quantisation.hpp.

#include "hardware/dtype.hpp"
#include "models/plan/choices.hpp"

namespace orrery::models {

/// The formats of a precision: what GEMMs compute in; what activations and working weights are
/// stored in (fp8 trains with bf16 storage); and what master weights, moments, the loss and its
/// statistics are kept in.
hardware::DType compute_dtype(Precision precision);
hardware::DType storage_dtype(Precision precision);
hardware::DType state_dtype(Precision precision);

}  // namespace orrery::models
