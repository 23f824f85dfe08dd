#pragma once
// The catalogue as tables and documents: what `orrery show` prints.

#include <optional>
#include <string>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// What is shown: a list, or one entry; as text and as JSON.
struct Shown {
  std::string text;
  Json json;
};

Shown show_gpus(const std::optional<std::string>& name);
Shown show_nodes(const std::optional<std::string>& name);
Shown show_clusters(const std::optional<std::string>& name);
Shown show_models(const std::optional<std::string>& name, std::optional<std::int64_t> seq_len);
/// year  of one profile: as it was then
Shown show_software(const std::optional<std::string>& name, std::optional<int> year);
Shown show_sites(const std::optional<std::string>& name);
/// How a schedule is printed, and of which size one of the table is.
struct ScheduleView {
  std::int64_t stages = 4, micro_batches = 8;
  bool csv = false;
};
/// By name, or a file of slots.
Shown show_schedules(const std::optional<std::string>& name, const ScheduleView& view);
Shown show_collectives();

}  // namespace orrery::scenarios
