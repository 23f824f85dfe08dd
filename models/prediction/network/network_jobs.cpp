#include "models/prediction/network/network_jobs.hpp"

#include <fmt/format.h>

#include <string>

#include "models/evaluation/step_times.hpp"
#include "models/plan/conflicts.hpp"
#include "models/prediction/limits.hpp"
#include "models/pricing/price.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

std::vector<PricedJob> priced_jobs(const Question& question) {
  std::vector<PricedJob> jobs;
  for (const JobRequest& each : question.network.jobs) {
    Question asked = *each.question;
    asked.cluster.nodes = static_cast<int>(each.nodes.size());  // which it fills
    if (const std::vector<Conflict> found = conflicts(asked); !found.empty()) {
      throw InputError{question.network.place(each.pointer + "/scenario" + found.front().pointer),
                       found.front().problem};
    }
    asked.cluster.nodes = question.cluster.nodes;
    PricedJob& job = jobs.emplace_back();
    job.program = std::make_shared<const Program>(lower(asked));
    check(*job.program);
    std::vector<std::string> notes;
    job.priced = price_program(*job.program, asked.cluster, asked.software, notes,
                               {.sharing = LinkSharing::alone, .nccl = asked.network.tuner()});
    require_exact_times(job.priced);
  }
  return jobs;
}

Time step_alone(const NetworkSite& site, std::size_t other) {
  const PricedProgram& priced = *site.others[other].priced;
  const Traffic traffic = traffic_of(priced, site_of_other(site, other));
  return traffic.maps_exact ? evaluate_maps(priced).step : evaluate_network(traffic).times.step;
}

std::vector<JobAnswer> answers_of_jobs(const Question& question, const NetworkSite& site,
                                       Time our_step) {
  std::vector<JobAnswer> answers;
  for (std::size_t i = 0; i < site.others.size(); ++i) {
    const JobRequest& asked = question.network.jobs[i];
    JobAnswer& answer = answers.emplace_back();
    answer.name = asked.name;
    answer.gpus = asked.question->plan.gpus();
    const Time alone = step_alone(site, i);
    answer.alone = with_unexplained(alone, asked.question->software);
    if (our_step <= alone * most_steps_of_other) continue;
    throw InputError{question.network.place(asked.pointer),
                     fmt::format("a step of it takes {:.3g} s and one of this job {:.3g} s; at "
                                 "most {} of its steps are simulated during one",
                                 seconds(alone), seconds(our_step), most_steps_of_other)};
  }
  return answers;
}

}  // namespace orrery::models
