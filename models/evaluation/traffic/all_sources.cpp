#include "models/evaluation/traffic/all_sources.hpp"

#include <algorithm>
#include <utility>

namespace orrery::models::traffic {

void AllSources::add(JobSources job, std::vector<double> speeds_of_job) {
  for (LinkFlows& flows : job.flows) {
    const std::uint32_t link = job.links[flows.link];
    if (number_of_link_.size() <= link) number_of_link_.resize(std::size_t{link} + 1, 0);
    std::uint32_t& number = number_of_link_[link];
    if (number == 0) {
      links.push_back(link);
      number = static_cast<std::uint32_t>(links.size());
    }
    flows.link = number - 1;
  }
  first_rank.push_back(first_rank.back() + job.ranks);
  first_entity.push_back(first_entity.back() + static_cast<std::uint32_t>(job.all.size()));
  jobs.push_back(std::move(job));
  speeds.push_back(std::move(speeds_of_job));
}

}  // namespace orrery::models::traffic
