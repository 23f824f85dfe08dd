#include "models/prediction/uncertainty.hpp"

#include <cmath>

#include "sim/errors.hpp"

namespace orrery::models {

double widening(std::int64_t borrowed) {
  return std::pow(widening_of_a_borrowed_curve, static_cast<double>(borrowed));
}

Residuals residuals_of(const Software& software) {
  if (software.residuals) return *software.residuals;
  static const Residuals of_generic = [] {
    const Document document = Document::from(software_profile("generic"), "generic");
    const Software generic = read_software(document.root());
    ensure(generic.residuals.has_value(), "the generic profile states its uncertainty");
    return *generic.residuals;
  }();
  return of_generic;
}

Uncertainty uncertainty_of(Time step, const Software& software, std::int64_t borrowed) {
  const Residuals residuals = residuals_of(software);
  const double wider = widening(borrowed);
  return {.p10 = scaled(step, std::exp(wider * residuals.p10)),
          .p50 = step,
          .p90 = scaled(step, std::exp(wider * residuals.p90))};
}

}  // namespace orrery::models
