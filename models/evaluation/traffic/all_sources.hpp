#pragma once
// The ranks, channels and groups of all jobs on a site, ours first, numbered one job after another.
// All jobs use one numbering of links.

#include <cstdint>
#include <vector>

#include "models/evaluation/traffic/templates.hpp"

namespace orrery::models::traffic {

struct AllSources {
  std::vector<JobSources> jobs;
  std::vector<std::vector<double>> speeds;                    // by job and rank; empty: all 1
  std::vector<std::uint32_t> first_rank{0}, first_entity{0};  // of each job, then the total
  std::vector<std::uint32_t> links;  // links of the site that some flow crosses
  bool units_apart = false;          // ranks of two tensor groups are never equal

  /// A rank or source: its job, and its number within the job.
  struct Local {
    std::size_t job = 0;
    std::uint32_t at = 0;
  };
  Local rank(std::uint32_t number) const { return place(first_rank, number); }
  Local source(std::uint32_t number) const { return place(first_entity, number); }

  std::uint32_t ranks() const { return first_rank.back(); }
  std::uint32_t sources() const { return first_entity.back(); }
  /// Number of a rank's tensor group in its stage.
  std::uint32_t unit(Local rank) const {
    return rank.at % jobs[rank.job].replicas / jobs[rank.job].tensor;
  }
  double speed(Local rank) const {
    return speeds[rank.job].empty() ? 1 : speeds[rank.job][rank.at];
  }

  /// Adds a job, whose flows are renumbered to the links of all jobs.
  void add(JobSources job, std::vector<double> speeds_of_job);

 private:
  static Local place(const std::vector<std::uint32_t>& firsts, std::uint32_t number) {
    std::size_t job = 0;
    while (number >= firsts[job + 1]) ++job;
    return {job, number - firsts[job]};
  }

  std::vector<std::uint32_t> number_of_link_;  // by link of the site, from 1; 0: none yet
};

}  // namespace orrery::models::traffic
