#include "scenarios/fitting/kernels/curve_tables.hpp"

#include "hardware/curves/measured.hpp"
#include "scenarios/fitting/collectives/collective_validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

bool holds_curves(const orrery::Table& table) {
  return holds_kernels(table) || holds_collectives(table);
}

CurveReport validate_curves(const orrery::Table& table, Scoring scoring) {
  if (holds_kernels(table)) {
    return validate_kernels(
        read_kernels(table),
        {.reference = read_kernels(hardware::measured_kernels()), .scoring = scoring});
  }
  return validate_collectives(
      read_collectives(table),
      {.reference = read_collectives(hardware::measured_collectives()), .scoring = scoring});
}

CurveReport fit_curves(const orrery::Table& table, LeaveOut leave_out, Residual residual) {
  if (holds_kernels(table)) {
    const std::vector<MeasuredKernel> rows = read_kernels(table);
    return validate_kernels(
        rows,
        {.reference = rows, .leave_out = leave_out, .residual = residual, .describe_curves = true});
  }
  if (holds_collectives(table)) {
    const std::vector<MeasuredCollective> rows = read_collectives(table);
    return validate_collectives(
        rows, {.reference = rows, .leave_out = leave_out, .describe_curves = true});
  }
  throw InputError{table.name(),
                   "holds neither kernels nor collectives; accepted: a header with kernel, gpu, "
                   "dtype, m, n, k_or_seq and time_us, or with collective, gpu, gpus, nodes, "
                   "link, bytes and time_us"};
}

}  // namespace orrery::scenarios
