#pragma once
// Other jobs on the fabric of a question, whose steps follow one another next to ours.

#include <memory>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// What a job runs, its transfers priced alone on their links.
struct PricedJob {
  std::shared_ptr<const Program> program;
  PricedProgram priced;  // of *program
};

/// Errors  what is wrong with its question: InputError at the job's pointer
std::vector<PricedJob> priced_jobs(const Question& question);

/// How long a job's step takes where it has the site's links to itself.
/// other  its number in `site.others`
Time step_alone(const NetworkSite& site, std::size_t other);

/// More steps of another job than this during one of ours are refused.
inline constexpr std::int64_t most_steps_of_other = 10'000;

/// Errors  jobs whose steps are too short next to ours: InputError
std::vector<JobAnswer> answers_of_jobs(const Question& question, const NetworkSite& site,
                                       Time our_step);

}  // namespace orrery::models
