// The table of built-in pipeline schedules: the whole list, without macros or static initialisers.

#include <algorithm>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

Registry<Schedule> all_schedules() {
  Registry<Schedule> known{"pipeline schedule"};
  known.add("naive", {.slots = naive, .paper = "one micro-batch in flight: no pipelining"});
  known.add("gpipe", {.slots = gpipe, .paper = "Huang et al. 2019, \"GPipe\", arXiv 1811.06965"});
  known.add("1f1b",
            {.slots = one_f_one_b,
             .is_default = true,
             .paper = "Narayanan et al. 2021, \"Memory-efficient pipeline-parallel DNN training\", "
                      "arXiv 2006.09503"});
  known.add("interleaved-1f1b",
            {.slots = interleaved,
             .chunks = ChunksPerStage::several,
             .is_default = true,
             .unmet = interleaved_unmet,
             .paper = "Narayanan et al. 2021, \"Efficient large-scale language model training on "
                      "GPU clusters\", arXiv 2104.04473"});
  const std::string_view zero_bubble =
      "Qi et al. 2023, \"Zero bubble pipeline parallelism\", arXiv 2401.10241";
  known.add("zb-h1", {.slots = zero_bubble_h1, .kinds = split_kinds, .paper = zero_bubble});
  known.add("zb-h2", {.slots = zero_bubble_h2, .kinds = split_kinds, .paper = zero_bubble});
  known.add("zb-1p", {.all_stages = zero_bubble_1p, .kinds = split_kinds, .paper = zero_bubble});
  known.add("zb-2p", {.all_stages = zero_bubble_2p, .kinds = split_kinds, .paper = zero_bubble});
  known.add("zb-v", {.slots = zero_bubble_v,
                     .chunks = ChunksPerStage::several,
                     .placement = Placement::vee,
                     .unmet = vee_unmet,
                     .kinds = split_kinds,
                     .paper = "Qi et al. 2024, \"Pipeline parallelism with controllable memory\", "
                              "arXiv 2405.15362"});
  known.add("dualpipe", {.slots = dual_pipe,
                         .placement = Placement::both_ways,
                         .unmet = dual_pipe_unmet,
                         .kinds = split_kinds,
                         .paper = "DeepSeek-AI 2024, \"DeepSeek-V3 technical report\", arXiv "
                                  "2412.19437"});
  known.add("dualpipev", {.slots = dual_pipe_v,
                          .chunks = ChunksPerStage::several,
                          .placement = Placement::vee,
                          .unmet = dual_pipe_v_unmet,
                          .kinds = split_kinds,
                          .paper = "DeepSeek-AI 2024, \"DeepSeek-V3 technical report\", arXiv "
                                   "2412.19437; cut in half: github.com/deepseek-ai/DualPipe"});
  return known;
}

}  // namespace

const Registry<Schedule>& builtin_schedules() {
  static const Registry<Schedule> known = all_schedules();
  return known;
}

bool Schedule::splits_backward() const {
  return std::ranges::find(kinds, SlotKind::weight_gradient) != kinds.end();
}

std::vector<Slots> slots_of(const Schedule& schedule, const PipelineShape& shape) {
  if (schedule.all_stages != nullptr) return schedule.all_stages(shape);
  const auto of_stage = static_cast<std::size_t>(shape.virtual_stages * shape.micro_batches);
  std::vector<Slots> all(static_cast<std::size_t>(shape.stages));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    Slots& slots = all[static_cast<std::size_t>(stage)];
    slots.reserve(schedule.kinds.size() * of_stage);
    schedule.slots(shape, stage, slots);
  }
  return all;
}

std::vector<std::int64_t> stages_of_chunks(const Schedule& schedule, const PipelineShape& shape) {
  std::vector<std::int64_t> stages;
  const std::int64_t chunks = shape.stages * shape.virtual_stages * schedule.copies();
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t round = chunk % shape.stages;
    const bool up = schedule.placement != Placement::round && chunk >= shape.stages;
    stages.push_back(up ? shape.stages - 1 - round : round);
  }
  return stages;
}

std::string_view default_schedule(std::int64_t virtual_stages) {
  const auto chunks = virtual_stages > 1 ? ChunksPerStage::several : ChunksPerStage::one;
  for (const auto& [name, schedule] : builtin_schedules()) {
    if (schedule.is_default && schedule.chunks == chunks) return name;
  }
  throw ContractError{"no schedule is usual for that many chunks of a stage"};
}

}  // namespace orrery::models
