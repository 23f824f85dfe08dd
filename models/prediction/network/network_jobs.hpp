#pragma once
// Other jobs on the fabric of a question, whose steps follow one another concurrently with ours.

#include <memory>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::models {

/// The Program of a job, with its transfers priced alone on their links.
struct PricedJob {
  std::shared_ptr<const Program> program;
  PricedProgram priced;  // of *program
};

/// Lowers, checks and prices each of a question's other jobs.
/// Errors  what is wrong with a job's question: InputError at the job's pointer
std::vector<PricedJob> priced_jobs(const Question& question);

/// How long a job's step takes where it has the site's links to itself.
/// other  its number in `site.others`
Time step_alone(const NetworkSite& site, std::size_t other);

/// The most steps of another job during one of ours; more are refused.
inline constexpr std::int64_t most_steps_of_other = 10'000;

/// Names and sizes of the other jobs, and their steps alone on the site.
/// Errors  jobs whose steps are too short next to ours: InputError
std::vector<JobAnswer> answers_of_jobs(const Question& question, const NetworkSite& site,
                                       Time our_step);

}  // namespace orrery::models
