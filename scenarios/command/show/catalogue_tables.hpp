#pragma once
// The catalogue as tables and documents: what `orrery show` prints.

#include <optional>
#include <string>

#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// One answer of `orrery show`: a list or one entry, as text and as JSON.
struct Shown {
  std::string text;
  Json json;
};

Shown show_gpus(const std::optional<std::string>& name);
Shown show_nodes(const std::optional<std::string>& name);
Shown show_clusters(const std::optional<std::string>& name);
Shown show_models(const std::optional<std::string>& name, std::optional<std::int64_t> seq_len);
/// year  prints the profile as of that year
Shown show_software(const std::optional<std::string>& name, std::optional<int> year);
Shown show_sites(const std::optional<std::string>& name);
/// The format of a printed schedule, and the pipeline size that a built-in schedule is printed for.
struct ScheduleView {
  std::int64_t stages = 4, micro_batches = 8;
  bool csv = false;
};
/// name  a built-in schedule or a file of slots; none: lists the built-in schedules
Shown show_schedules(const std::optional<std::string>& name, const ScheduleView& view);
Shown show_collectives();
/// name  a format of stored samples; none: all of them
Shown show_data_formats(const std::optional<std::string>& name);
/// The format of the printed fields: lines for a terminal, or the tables of models/plan/README.md.
enum class FieldsAs : std::uint8_t { lines, markdown };
/// name  a field of a plan; none: all of them
Shown show_plan_fields(const std::optional<std::string>& name, FieldsAs format);

}  // namespace orrery::scenarios
