#include <fmt/format.h>

#include "hardware/measured.hpp"
#include "scenarios/command/curves.hpp"
#include "scenarios/fitting/collective_validation.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

std::string text_of(const CurveReport& report, const std::vector<Grouping>& groupings,
                    const CurveFlags& flags) {
  if (flags.json) return to_json(report, groupings).dump(2) + "\n";
  return table_of(report, groupings, flags.worst);
}

}  // namespace

bool holds_curves(const orrery::Table& table) {
  return holds_kernels(table) || holds_collectives(table);
}

std::string validate_curves(const orrery::Table& table, const std::vector<Grouping>& groupings,
                            const CurveFlags& flags) {
  const Scoring scoring = flags.in_sample ? Scoring::in_sample : Scoring::unseen;
  if (holds_kernels(table)) {
    const KernelQuestion question{.reference = read_kernels(hardware::measured_kernels()),
                                  .scoring = scoring};
    return text_of(validate_kernels(read_kernels(table), question), groupings, flags);
  }
  const CollectiveQuestion question{.reference = read_collectives(hardware::measured_collectives()),
                                    .scoring = scoring};
  return text_of(validate_collectives(read_collectives(table), question), groupings, flags);
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
