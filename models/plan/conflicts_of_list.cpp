// Conflicts of a plan with a model that is given as a list of operations: replicas, micro-batches
// and ZeRO-1 are simulated, everything that cuts or changes a transformer's layers is refused.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "models/model/operation_list.hpp"
#include "models/plan/conflict_checks.hpp"

namespace orrery::models {
namespace {

/// Fields that mean the same for any model.
constexpr std::array<std::string_view, 11> known{
    "data",      "zero",    "micro_batch", "global_batch",   "seq_len", "precision",
    "optimizer", "moments", "overlap",     "overlap_gather", "bucket"};
constexpr std::array<std::string_view, 4> also{"gradient_dtype", "state_precision", "attention",
                                               "cuda_graphs"};

class ListChecks : private ConflictChecks {
 public:
  explicit ListChecks(const ConflictChecks& checks) : ConflictChecks{checks} {}

  void all() {
    for (const PlanField& field : plan_fields()) {
      const bool kept = std::ranges::count(known, field.key) + std::ranges::count(also, field.key);
      if (kept || !field.is_set(plan_)) continue;
      add(fmt::format("/{}", field.key),
          fmt::format("{} {} is not simulated for a model that is given as a list of operations; "
                      "data, micro_batch, precision and zero 0 or 1 are",
                      field.key, field.text(plan_)));
    }
    const bool whole = plan_.sharding.zero == Zero::none || plan_.sharding.zero == Zero::one;
    if (!whole) {
      add("/zero", fmt::format("zero {} is not simulated for a model that is given as a list of "
                               "operations; 0 and 1 are",
                               word_of(zero_words, plan_.sharding.zero)));
    }
    if (plan_.batch.seq_len != 1) {
      add("/seq_len", fmt::format("seq_len is {}; a sample of a list of operations is no sequence, "
                                  "leave it out",
                                  plan_.batch.seq_len));
    }
    if (plan_.optimizer.kind != Optimizer::adam) {
      add("/optimizer", "the update of a list of operations is stated in the list");
    }
    const Precision precision = plan_.formats.precision;
    if (bits_of(precision) < 16) {
      add("/precision", fmt::format("precision {} is not simulated for a list of operations, whose "
                                    "operations state their own format; bf16, fp16 and fp32 are",
                                    name(precision)));
    }
    if (model_.list->trains()) return;
    if (plan_.batch.micro != 1 || plan_.batch.global != plan_.data) {
      add("/global_batch", "a loop of steps has no batch; leave micro_batch and global_batch out");
    }
    if (plan_.sharding.zero != Zero::none) add("/zero", "a loop without training has no state");
  }

 private:
  static int bits_of(Precision precision) {
    return precision == Precision::bf16 || precision == Precision::fp16 ? 16
           : precision == Precision::fp32 || precision == Precision::tf32 ||
                   precision == Precision::fp64
               ? 32
               : 8;
  }
};

}  // namespace

void add_conflicts_of_list(const ConflictChecks& checks) {
  ListChecks{checks}.all();
}

}  // namespace orrery::models
