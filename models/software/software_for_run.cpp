// Finds the software profile for a run of a stack named in a CSV file.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "models/software/profile_in_year.hpp"
#include "models/software/software.hpp"

namespace orrery::models {

namespace {

const Software* standing_for(const std::vector<Software>& profiles, const StackRun& run) {
  for (const Software& each : profiles) {
    for (const Scope& scope : each.stands_for) {
      if (scope.holds(run)) return &each;
    }
  }
  for (const Software& each : profiles) {
    if (each.name == run.stack) return &each;
  }
  return nullptr;
}

Software read_shipped(const std::string& name, std::optional<int> year) {
  return read_software(Document::from(software_profile(name, year), name).root());
}

/// All shipped profiles, each in its own year; read once.
const std::vector<Software>& shipped() {
  static const std::vector<Software> profiles = [] {
    std::vector<Software> read;
    for (const std::string& name : software_names()) read.push_back(read_shipped(name, {}));
    return read;
  }();
  return profiles;
}

/// A shipped profile as of the year of a run; 0: not known, the profile's own year.
Software in_year(const Software& profile, int year) {
  return year == 0 ? profile : read_shipped(profile.name, year);
}

}  // namespace

std::string profile_in_year(std::string_view stack, int year) {
  for (const Software& each : shipped()) {
    for (const Scope& scope : each.stands_for) {
      if (scope.nodes == Scope::Nodes::any && scope.holds({.stack = stack, .year = year})) {
        return each.name;
      }
    }
  }
  return std::string{stack};
}

Software software_for_run(const StackRun& run, const std::vector<Software>& own,
                          std::vector<std::string>& assumptions) {
  if (const Software* found = standing_for(own, run)) return *found;
  if (const Software* found = standing_for(shipped(), run)) return in_year(*found, run.year);
  assumptions.push_back(fmt::format("/software: no profile of '{}'; generic assumed", run.stack));
  return in_year(*standing_for(shipped(), {.stack = "generic", .year = run.year}), run.year);
}

}  // namespace orrery::models
