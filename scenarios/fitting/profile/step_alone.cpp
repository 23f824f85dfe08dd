#include "scenarios/fitting/profile/step_alone.hpp"

#include <string>
#include <vector>

#include "models/evaluation/step_times.hpp"
#include "models/plan/conflicts.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

StepAlone step_of(const models::Program& program, const hardware::Cluster& cluster,
                  const models::Software& software) {
  std::vector<std::string> notes;
  const models::PricedProgram priced = price_program(program, cluster, software, notes);
  return {.seconds = seconds(with_unexplained(evaluate_maps(priced).step, software)),
          .fallback_curves = priced.fallback_curves};
}

StepAlone step_of(const models::Question& question) {
  const std::vector<models::Conflict> found = conflicts(question);
  if (!found.empty()) throw InputError{found.front().pointer, found.front().problem};
  return step_of(models::lower(question), question.cluster, question.software);
}

}  // namespace orrery::scenarios
