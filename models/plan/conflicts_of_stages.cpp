// Conflicts of pipeline schedules and of the layers of their chunks.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/plan/conflict_checks.hpp"
#include "models/plan/derived.hpp"

namespace orrery::models {
namespace {

class StageChecks : private ConflictChecks {
 public:
  explicit StageChecks(const ConflictChecks& checks) : ConflictChecks{checks} {}

  void all() {
    if (plan_.overlap.transfers && plan_.pipeline == 1) {
      add("/overlap_p2p", "has no effect: pipeline is 1");
    }
    schedule();
    layers();
  }

 private:
  void schedule() {
    if (!plan_.stages.table.empty()) {
      schedule_file();
      return;
    }
    if (!schedules_.has(plan_.stages.schedule)) {
      add("/schedule", fmt::format("unknown schedule '{}'; known: {}", plan_.stages.schedule,
                                   listed(schedules_.names())));
      return;
    }
    const Schedule& row = schedules_.at(plan_.stages.schedule);
    if (plan_.stages.virtual_stages > 1 && row.chunks == ChunksPerStage::one) {
      add("/virtual_stages",
          fmt::format("{} virtual stages need the schedule {}, not {}", plan_.stages.virtual_stages,
                      fmt::join(schedules_of(ChunksPerStage::several), " or "),
                      plan_.stages.schedule));
    }
    if (row.splits_backward()) whole_gradients("/schedule", plan_.stages.schedule);
    deferred_gradients(row.splits_backward());
    if (!row.unmet) return;
    for (const std::string& what : row.unmet(plan_.shape())) {
      add("/schedule", fmt::format("{} needs {}", plan_.stages.schedule, what));
    }
  }

  /// A schedule from a file is for one number of ranks, chunks and micro-batches.
  void schedule_file() {
    const ScheduleTable& table = plan_.stages.table;
    const auto wants = [&](std::string_view pointer, std::string_view what, std::int64_t needed,
                           std::int64_t found) {
      if (needed == found) return;
      add(std::string{pointer},
          fmt::format("{} has {} {}, the plan has {}", plan_.stages.schedule, needed, what, found));
    };
    wants("/pipeline", "ranks", std::ssize(table.slots), plan_.pipeline);
    wants("/virtual_stages", "chunks", table.chunks, plan_.chunks());
    wants("/global_batch", "micro-batches", table.micro_batches, plan_.micro_batches());
    if (table.splits_backward()) whole_gradients("/schedule", plan_.stages.schedule);
    deferred_gradients(table.splits_backward());
  }

  void deferred_gradients(bool splits_backward) {
    if (plan_.stages.deferred_head_gradients == 0) return;
    const std::string pointer = "/deferred_head_gradients";
    if (plan_.pipeline == 1) add(pointer, "needs pipeline above 1");
    if (splits_backward) {
      add(pointer, fmt::format("does not apply to {}, which schedules each weight gradient itself",
                               plan_.stages.schedule));
    }
    whole_gradients(pointer, "deferred_head_gradients");
  }

  void whole_gradients(const std::string& pointer, const std::string& what) {
    if (trains_adapters(plan_)) {
      add(pointer, fmt::format("{} splits backward, which is not simulated with task {}", what,
                               word_of(task_words, plan_.task)));
    }
    if (crosses(model_)) {
      add(pointer,
          fmt::format("{} splits backward, which is not simulated with cross-attention", what));
    }
    if (plan_.kernels.fused_cross_entropy) {
      add("/fused_cross_entropy", fmt::format("is not simulated with {}, which splits backward: "
                                              "the head's gradients are computed in forward",
                                              what));
    }
    if (plan_.offload.layers > 0) {
      add("/offload_layers", fmt::format("is not simulated with {}, which splits backward", what));
    }
    if (!shards_gradients(plan_)) return;
    add("/zero",
        fmt::format("zero {} is not simulated with {}, which splits backward; supported: 0, 1",
                    word_of(zero_words, plan_.sharding.zero), what));
  }

  std::vector<std::string> schedules_of(ChunksPerStage chunks) const {
    std::vector<std::string> names;
    for (const auto& [name, row] : schedules_) {
      const bool two = row.placement == Placement::vee;
      if (row.chunks == chunks && (!two || plan_.stages.virtual_stages == 2)) names.push_back(name);
    }
    return names;
  }

  void layers() {
    if (plan_.stages.by_time && plan_.stages.embedding_counts) {
      add("/embedding_counts", "embedding_counts and stage_layers exclude each other");
    }
    if (!plan_.stages.layers.empty()) {
      stage_layers();
      return;
    }
    // Where embedding and head count as a layer each, their chunks may hold nothing else.
    const bool two_slots = plan_.stages.embedding_counts && plan_.chunks() > 1;
    const std::int64_t needed = plan_.chunks() - (two_slots ? 2 : 0);
    if (model_.layers.size() >= needed) return;
    const std::string cut = plan_.stages.virtual_stages == 1
                                ? fmt::format("pipeline {}", plan_.pipeline)
                                : fmt::format("pipeline {} x virtual_stages {}", plan_.pipeline,
                                              plan_.stages.virtual_stages);
    add("/pipeline",
        fmt::format("{} leaves a stage without a layer: the model has {} layers{}", cut,
                    model_.layers.size(),
                    two_slots ? ", and embedding and head count as a layer each" : ""));
  }

  void stage_layers() {
    if (plan_.stages.embedding_counts) {
      add("/embedding_counts", "embedding_counts and stage_layers exclude each other");
    }
    const auto count = static_cast<std::int64_t>(plan_.stages.layers.size());
    if (count != plan_.chunks()) {
      add("/stage_layers",
          fmt::format("stage_layers has {} entries for {} stages", count, plan_.chunks()));
    }
    const auto& each = plan_.stages.layers;
    const bool inner = each.size() > 2 && *std::min_element(each.begin() + 1, each.end() - 1) < 1;
    if (inner || each.front() < (each.size() > 1 ? 0 : 1)) {
      add("/stage_layers",
          "every stage except the first and the last, which hold embedding and head, needs at "
          "least one layer");
    }
    const std::int64_t sum =
        std::accumulate(plan_.stages.layers.begin(), plan_.stages.layers.end(), std::int64_t{0});
    if (sum != model_.layers.size()) {
      add("/stage_layers", fmt::format("stage_layers add up to {}, the model has {} layers", sum,
                                       model_.layers.size()));
    }
  }
};

}  // namespace

void add_conflicts_of_stages(const ConflictChecks& checks) {
  StageChecks{checks}.all();
}

}  // namespace orrery::models
