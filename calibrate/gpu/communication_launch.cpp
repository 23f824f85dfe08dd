#include "calibrate/gpu/communication_launch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::calibrate {

namespace {

constexpr Bytes small_message{4096};
constexpr int launched_in_a_run = 50;  // fewer than a queue holds before its host must wait

}  // namespace

CommunicationLaunch::CommunicationLaunch(GpuCrew& crew, Clock& clock)
    : crew_{crew},
      clock_{clock},
      collective_{models::Collective::all_reduce, cut_evenly(small_message, crew.team.ranks()),
                  crew} {}

std::string CommunicationLaunch::name() const {
  return fmt::format("launch of {}", collective_.name());
}

bool CommunicationLaunch::run(std::vector<Time>& times) {
  std::vector<Time> of(crew_.members.size());
  crew_.team.all([&](int rank) {
    const auto at = static_cast<std::size_t>(rank);
    const Time begin = clock_.now();
    for (int i = 0; i < launched_in_a_run; ++i) collective_.call(rank, size());
    of[at] = clock_.now() - begin;
    crew_.members[at].device->finish();
  });
  const Time slowest = *std::max_element(of.begin(), of.end());
  times[0] = std::max(Time{1}, Time{slowest.count() / launched_in_a_run});
  return true;
}

}  // namespace orrery::calibrate
