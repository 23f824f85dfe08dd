#include <fmt/format.h>

#include "models/plan/conflict_checks.hpp"
#include "models/plan/conflicts.hpp"

namespace orrery::models {
namespace {

class Checker : private ConflictChecks {
 public:
  using ConflictChecks::ConflictChecks;

  void all() {
    if (!in_range()) return;
    model();
    gpus();
    add_conflicts_of_axes(*this);
    batch();
    add_conflicts_of_state(*this);
    add_conflicts_of_stages(*this);
    if (model_.list) add_conflicts_of_list(*this);
  }

 private:
  /// Checked first, because later checks divide by these fields and multiply them.
  bool in_range() {
    for (const PlanField& field : plan_fields()) {
      if (!field.value.count) continue;
      const std::int64_t value = field.value.count(plan_);
      const std::string pointer = fmt::format("/{}", field.key);
      if (value < field.value.least) {
        add(pointer, fmt::format("{} {} is below {}", field.key, value, field.value.least));
      }
      if (value > field.value.most) {
        add(pointer, fmt::format("{} {} is above {}", field.key, value, field.value.most));
      }
    }
    return found_.empty();
  }

  void model() {
    if (model_.not_simulated) {
      add("", fmt::format("the model cannot be simulated: {}", *model_.not_simulated));
    }
    if (model_.front) images(*model_.front);
    if (crosses(model_)) both_sides();
  }

  /// What is not simulated of layers that attend to an encoder's output: a pipeline, which would
  /// pass it on from stage to stage, and whatever cuts or changes one of the two sequences.
  void both_sides() {
    const auto refuse = [&](bool set, const char* key, const char* what) {
      if (set) add(key, fmt::format("{} is not simulated with cross-attention", what));
    };
    refuse(plan_.pipeline > 1, "/pipeline", "a pipeline");
    refuse(plan_.context > 1, "/context", "context parallelism");
    refuse(plan_.task != Task::pretrain, "/task", "a task other than pretrain");
    refuse(!plan_.batch.documents.empty(), "/sequence_lengths", "packing of documents");
    const std::int64_t source = source_length(model_);
    if (plan_.sequence_parallel && source % plan_.tensor != 0) {
      add("/sequence", fmt::format("tensor {} does not divide the {} tokens of the encoder, as "
                                   "sequence parallelism needs",
                                   plan_.tensor, source));
    }
  }

  void images(const FrontEncoder& front) {
    if (front.rows() > plan_.batch.seq_len) {
      add("/seq_len", fmt::format("seq_len {} is shorter than the {} rows of a sequence's images",
                                  plan_.batch.seq_len, front.rows()));
    }
    if (plan_.task != Task::pretrain) {
      add("/task", "with an encoder of images only the task pretrain is simulated");
    }
    if (plan_.context > 1) {
      add("/context", "context parallelism with an encoder of images is not simulated");
    }
  }

  void gpus() {
    if (plan_.gpus() > most_gpus) {
      add("/data",
          fmt::format("{} GPUs are more than 2^20, the most that a plan may use", plan_.gpus()));
    }
    if (plan_.gpus() != gpus_) {
      add("/data", fmt::format("tensor {}{} x pipeline {} x data {} is {} GPUs, the cluster has {}",
                               plan_.tensor,
                               plan_.context > 1 ? fmt::format(" x context {}", plan_.context) : "",
                               plan_.pipeline, plan_.data, plan_.gpus(), gpus_));
    }
  }

  void batch() {
    if (plan_.batch.global % (plan_.batch.micro * plan_.data) != 0) {
      add("/global_batch", fmt::format("micro_batch {} x data {} does not divide global_batch {}",
                                       plan_.batch.micro, plan_.data, plan_.batch.global));
    }
    const std::int64_t count = plan_.micro_batches();
    if (count > most_micro_batches) {
      add("/global_batch",
          fmt::format("{} micro-batches of a replica are more than {}; raise micro_batch or data",
                      count, most_micro_batches));
    } else if (count * plan_.chunks() > most_forwards) {
      add("/global_batch",
          fmt::format("{} micro-batches on {} chunks of the model are more than {} forward passes; "
                      "raise micro_batch or data",
                      count, plan_.chunks(), most_forwards));
    }
  }
};

}  // namespace

std::vector<Conflict> conflicts(const Plan& plan, const Model& model, std::int64_t gpus,
                                const Registry<Schedule>& schedules) {
  std::vector<Conflict> found;
  Checker{plan, model, gpus, schedules, found}.all();
  for (const PlanField& field : plan_fields()) {
    if (field.conflict == nullptr || !field.is_set(plan)) continue;
    std::string problem = field.conflict(plan, model);
    if (!problem.empty()) found.push_back({fmt::format("/{}", field.key), std::move(problem)});
  }
  return found;
}

}  // namespace orrery::models
