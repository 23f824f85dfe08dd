// The table of schedules, in the open. No macros, no static initialisers.

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

Registry<Schedule> all_schedules() {
  Registry<Schedule> known{"pipeline schedule"};
  known.add("naive", {.slots = naive, .paper = "one micro-batch in flight: no pipelining"});
  known.add("gpipe", {.slots = gpipe, .paper = "Huang et al. 2019, \"GPipe\", arXiv 1811.06965"});
  known.add("1f1b",
            {.slots = one_f_one_b,
             .usual = true,
             .paper = "Narayanan et al. 2021, \"Memory-efficient pipeline-parallel DNN training\", "
                      "arXiv 2006.09503"});
  known.add("interleaved-1f1b",
            {.slots = interleaved,
             .chunks = ChunksPerStage::several,
             .usual = true,
             .lacks = interleaved_lacks,
             .paper = "Narayanan et al. 2021, \"Efficient large-scale language model training on "
                      "GPU clusters\", arXiv 2104.04473"});
  return known;
}

}  // namespace

const Registry<Schedule>& builtin_schedules() {
  static const Registry<Schedule> known = all_schedules();
  return known;
}

std::string_view usual_schedule(std::int64_t virtual_stages) {
  const auto chunks = virtual_stages > 1 ? ChunksPerStage::several : ChunksPerStage::one;
  for (const auto& [name, schedule] : builtin_schedules()) {
    if (schedule.usual && schedule.chunks == chunks) return name;
  }
  throw ContractError{"no schedule is usual for that many chunks of a stage"};
}

}  // namespace orrery::models
