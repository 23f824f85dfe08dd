#include "scenarios/search/step_bound.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>

#include "models/plan/derived.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "scenarios/search/plan_search.hpp"

namespace orrery::scenarios {

using models::never;
using models::Plan;

namespace {

constexpr std::array<StepPath, 4> path_rows{{{"work", &StepPaths::work},
                                             {"host", &StepPaths::host},
                                             {"fill", &StepPaths::fill},
                                             {"turn", &StepPaths::turn}}};

/// The later of two times, one of which may be `never` before the step.
std::int64_t later(std::int64_t one, std::int64_t other) {
  return std::max(one, other);
}

std::int64_t along(std::int64_t begin, std::int64_t path) {
  return begin < never / 2 || path < never / 2 ? never : begin + path;
}

/// Orders of which the paths through the pipeline are known.
enum class SlotOrder : std::uint8_t { one_by_one, all_forwards_first, interleaved, other };

SlotOrder order_of_slots(const Plan& plan) {
  if (plan.stages.deferred_head_gradients > 0) return SlotOrder::other;
  const std::string& name = plan.stages.schedule;
  if (name == "1f1b") return SlotOrder::one_by_one;
  if (name == "gpipe") return SlotOrder::all_forwards_first;
  if (name == "interleaved-1f1b") return SlotOrder::interleaved;
  return SlotOrder::other;
}

/// A plan's pipeline, chunk by chunk.
class Pipeline {
 public:
  Pipeline(const PlanQuery& query, const Plan& plan, BlockShape& shape)
      : plan_{plan}, shape_{shape}, stages_{plan.pipeline}, count_{plan.micro_batches()} {
    const models::Schedule* schedule = nullptr;
    if (plan.stages.table.empty()) schedule = &models::builtin_schedules().at(plan.stages.schedule);
    known_ = schedule != nullptr && !plan.stages.by_time;
    if (!known_) return;
    copies_ = schedule->copies();
    round_ = schedule->placement == models::Placement::round;
    split_ = schedule->splits_backward() || plan.stages.deferred_head_gradients > 0;
    order_ = order_of_slots(plan);
    const bool sharded = models::shards_gradients(plan);
    always_cut_ = sharded;
    const std::vector<std::int64_t> layers = models::layers_per_chunk(plan, query.model);
    std::int64_t first = 0;
    for (std::size_t c = 0; c < layers.size(); ++c) {
      costs_.push_back(&shape.costs({.first = first,
                                     .count = layers[c],
                                     .has_embedding = c == 0,
                                     .has_head = c + 1 == layers.size(),
                                     .recomputed = plan.recompute.layers,
                                     .every = plan.recompute.every}));
      first += layers[c];
    }
    if (!round_) place_of_ = models::stages_of_chunks(*schedule, plan.shape());
  }

  bool known() const { return known_; }
  std::int64_t stages() const { return stages_; }
  std::size_t chunks() const { return costs_.size(); }
  bool round() const { return round_; }
  bool splits() const { return split_; }
  SlotOrder order() const { return order_; }
  std::int64_t micro_batches() const { return count_ / copies_; }
  std::int64_t virtual_stages() const { return std::ssize(costs_) / stages_; }

  const ChunkCosts& costs(std::size_t chunk) const { return *costs_[chunk]; }
  const PassTimes& forward(std::size_t chunk) const {
    return always_cut_ ? costs(chunk).forward.cut : costs(chunk).forward.whole;
  }
  const PassTimes& backward(std::size_t chunk) const {
    return always_cut_ || count_ == 1 ? last_backward(chunk) : costs(chunk).backward.whole;
  }
  /// The backward of the last micro-batch, which gradient buckets cut.
  const PassTimes& last_backward(std::size_t chunk) const { return costs(chunk).backward.cut; }

  /// The compute lane's time of all passes of a chunk.
  std::int64_t work_of(std::size_t chunk) const {
    const std::int64_t m = micro_batches();
    if (split_) return m * (forward(chunk).compute + last_backward(chunk).kernels);
    return m * forward(chunk).compute + (m - 1) * backward(chunk).compute +
           last_backward(chunk).compute;
  }
  std::int64_t host_of(std::size_t chunk) const {
    if (split_) return micro_batches() * std::max<std::int64_t>(0, forward(chunk).host);
    return micro_batches() * (forward(chunk).host + last_backward(chunk).host);
  }
  /// Calls visit(stage, chunk) for every chunk of every stage; of two copies of the model, both.
  template <class Visit>
  void for_each(Visit visit) const {
    const std::size_t all = round_ ? costs_.size() : place_of_.size();
    for (std::size_t c = 0; c < all; ++c) {
      const std::size_t stage =
          round_ ? c % static_cast<std::size_t>(stages_) : static_cast<std::size_t>(place_of_[c]);
      visit(stage, c % costs_.size());
    }
  }

  /// Forwards of a stage before its first backward.
  std::int64_t warm_up(std::int64_t stage) const {
    const std::int64_t all = count_ * virtual_stages();
    switch (order_) {
      case SlotOrder::one_by_one:
        return std::min(stages_ - stage, count_);
      case SlotOrder::all_forwards_first:
        return count_;
      case SlotOrder::interleaved: {
        const std::int64_t depth = 2 * (stages_ - stage - 1) + (virtual_stages() - 1) * stages_;
        return count_ == stages_ ? all : std::min(depth + 1, all);
      }
      case SlotOrder::other:
        return 1;
    }
    return 1;
  }
  /// Sum over those forwards of a cost of their chunk.
  template <class Cost>
  auto over_warm_up(std::int64_t stage, Cost cost) const {
    decltype(cost(std::size_t{0})) sum{};
    std::int64_t left = warm_up(stage);
    if (order_ != SlotOrder::interleaved) return cost(static_cast<std::size_t>(stage)) * left;
    const std::int64_t v = virtual_stages(), group = stages_ * v;
    for (std::int64_t k = 0; k < v; ++k) {
      const std::int64_t rest = left % group - k * stages_;
      const std::int64_t runs = left / group * stages_ + std::clamp<std::int64_t>(rest, 0, stages_);
      sum = sum + cost(static_cast<std::size_t>(k * stages_ + stage)) * runs;
    }
    return sum;
  }

 private:
  const Plan& plan_;
  BlockShape& shape_;
  std::int64_t stages_, count_, copies_ = 1;
  bool known_ = false, round_ = true, split_ = false, always_cut_ = false;
  SlotOrder order_ = SlotOrder::other;
  std::vector<const ChunkCosts*> costs_;
  std::vector<std::int64_t> place_of_;
};

/// The paths that go through several stages.
class ThroughStages {
 public:
  ThroughStages(const Pipeline& pipeline, std::int64_t step_launch)
      : pipe_{pipeline}, stages_{static_cast<std::size_t>(pipeline.stages())} {
    for (std::size_t s = 0; s < stages_; ++s) {
      std::int64_t sum = 0;
      for (std::size_t c = s; c < pipe_.chunks(); c += stages_) sum += pipe_.work_of(c);
      work_.push_back(sum);
    }
    go_up(step_launch);
  }

  std::int64_t fill() const {
    std::vector<std::int64_t> ends(stages_);
    for (std::size_t s = 0; s < stages_; ++s) {
      ends[s] = along(first_end_[s], work_[s] - pipe_.forward(s).compute);
    }
    return pipe_.order() == SlotOrder::other ? std::ranges::max(ends) : last_end(ends);
  }

  /// All of a stage's passes before the last backward of its last chunk: the other chunks' last
  /// backwards, one of interleaved chunks for each stage, come after that.
  std::int64_t before_last_backwards(std::size_t stage) const {
    std::int64_t sum = work_[stage] - pipe_.forward(stage).compute;
    for (std::size_t c = stage; c < pipe_.chunks(); c += stages_) {
      sum -= pipe_.last_backward(c).compute;
      const bool last = c + stages_ >= pipe_.chunks();
      if (!last) sum -= static_cast<std::int64_t>(stages_ - 1) * pipe_.backward(c).compute;
    }
    return along(first_end_[stage], sum);
  }

  /// Only for orders of which the first backward is known.
  std::int64_t turn() const {
    std::vector<std::int64_t> ends(stages_);
    const std::size_t last = pipe_.chunks() - 1;
    std::int64_t output = never;
    for (std::size_t s = stages_; s-- > 0;) {
      const std::size_t chunk = pipe_.chunks() - stages_ + s;
      const PassTimes& pass = pipe_.backward(chunk);
      const std::int64_t warm = pipe_.over_warm_up(
          static_cast<std::int64_t>(s), [&](std::size_t c) { return pipe_.forward(c).compute; });
      std::int64_t free = along(first_end_[s], warm - pipe_.forward(s).compute);
      if (chunk == last) free = later(free, end_);
      const std::int64_t end = later(along(output, pass.arrives), along(free, pass.compute));
      output = later(along(output, pass.through), along(free, pass.leaves));
      ends[s] = along(end, work_[s] - warm - pass.compute);
    }
    return last_end(ends);
  }

 private:
  /// The first micro-batch on its way up.
  void go_up(std::int64_t step_launch) {
    first_end_.resize(stages_);
    std::int64_t output = never;
    for (std::size_t c = 0; c < pipe_.chunks(); ++c) {
      const PassTimes& pass = pipe_.forward(c);
      const std::size_t stage = c % stages_;
      std::int64_t free = 0;
      if (c >= stages_ && pipe_.order() == SlotOrder::interleaved) {
        std::int64_t before = 0;
        for (std::size_t own = stage; own < c; own += stages_) {
          before += static_cast<std::int64_t>(stages_) * pipe_.forward(own).compute;
        }
        free = along(first_end_[stage], before - pipe_.forward(stage).compute);
      }
      std::int64_t end = later(along(output, pass.arrives), along(free, pass.compute));
      std::int64_t left = later(along(output, pass.through), along(free, pass.leaves));
      if (c == 0) {
        end = later(end, along(step_launch, pass.launched));
        left = later(left, along(step_launch, pass.sent));
      }
      if (c < stages_) first_end_[c] = end;
      output = left;
      end_ = end;
    }
  }

  /// When the first stage may end: the last backward of a stage is of its first chunk, and waits
  /// for that of the stage after it.
  std::int64_t last_end(const std::vector<std::int64_t>& own) const {
    std::int64_t longest = 0, output = never;
    for (std::size_t s = stages_; s-- > 0;) {
      const PassTimes& pass = pipe_.last_backward(s);
      const std::int64_t begin = along(own[s], -pass.compute);
      longest = std::max({longest, own[s], along(output, pass.arrives)});
      output = later(along(output, pass.through), along(begin, pass.leaves));
    }
    return longest;
  }

  const Pipeline& pipe_;
  std::size_t stages_;
  std::vector<std::int64_t> work_;       // by stage
  std::vector<std::int64_t> first_end_;  // of each stage's first forward
  std::int64_t end_ = 0;                 // of the last chunk's first forward
};

}  // namespace

std::span<const StepPath> step_paths() {
  return path_rows;
}

StepPaths paths_of(const PlanQuery& query, const Plan& plan, BlockShape& shape) {
  const Pipeline pipe{query, plan, shape};
  StepPaths paths;
  if (!pipe.known()) return paths;
  const auto stages = static_cast<std::size_t>(pipe.stages());
  std::vector<std::int64_t> work(stages), host(stages, shape.step_launch().count());
  pipe.for_each([&](std::size_t stage, std::size_t chunk) {
    work[stage] += pipe.work_of(chunk);
    host[stage] += pipe.host_of(chunk);
  });
  paths.work = Time{std::ranges::max(work)};
  paths.host = Time{std::ranges::max(host)};
  if (!pipe.round()) return paths;
  const ThroughStages through{pipe, shape.step_launch().count()};
  paths.fill = Time{std::max<std::int64_t>(0, through.fill())};
  if (pipe.order() != SlotOrder::other) {
    paths.turn = Time{std::max<std::int64_t>(0, through.turn())};
  }
  return paths;
}

std::vector<Time> before_reductions(const PlanQuery& query, const Plan& plan, BlockShape& shape) {
  const Pipeline pipe{query, plan, shape};
  const bool each_pass = models::shards_gradients(plan);
  if (!pipe.known() || !pipe.round() || pipe.splits() || each_pass) return {};
  const ThroughStages through{pipe, shape.step_launch().count()};
  const auto stages = static_cast<std::size_t>(pipe.stages());
  const bool ordered = pipe.order() != SlotOrder::other;
  std::vector<Time> earliest;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t c = stage; c < pipe.chunks(); c += stages) {
      least = std::min(least, pipe.work_of(c) - pipe.last_backward(c).compute);
    }
    if (ordered) least = later(least, through.before_last_backwards(stage));
    earliest.emplace_back(least);
  }
  return earliest;
}

Time kernels_of(const PlanQuery& query, const Plan& plan, BlockShape& shape) {
  const Pipeline pipe{query, plan, shape};
  std::int64_t sum = 0;
  pipe.for_each([&](std::size_t, std::size_t chunk) {
    const ChunkCosts& costs = pipe.costs(chunk);
    sum += pipe.micro_batches() * (costs.forward.cut.kernels + costs.backward.cut.kernels);
  });
  return Time{sum / pipe.stages()};
}

Bytes memory_floor(const PlanQuery& query, const Plan& plan, BlockShape& shape) {
  const Bytes sizes = least_memory(query, plan);
  const Pipeline pipe{query, plan, shape};
  // A loss that keeps no logits takes them off the last stage's activations.
  const bool keeps_logits = query.software.memory.loss_copies >= 0;
  if (!pipe.known() || !pipe.round() || models::trains_adapters(plan)) return sizes;
  // Offloaded layers save less than the shape's, and so do those that recompute modules elsewhere
  // and all layers of micro-batches that recompute more than others.
  const bool all_alike = plan.recompute.elsewhere.empty() &&
                         plan.recompute.partial_micro_batches == 0 && plan.offload.layers == 0;
  const models::MemoryAllowances& allowed = query.software.memory;
  const Bytes libraries = allowed.context + allowed.workspace;
  const bool gathers = models::shards_gradients(plan) && plan.sharding.zero == models::Zero::three;
  const auto fragmented = [](Bytes bytes, double share) {
    return bytes + Bytes{static_cast<std::int64_t>(static_cast<double>(bytes.count()) * share)};
  };
  Bytes most = sizes;
  const auto stages = static_cast<std::size_t>(pipe.stages());
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::int64_t parameters = 0, experts = 0;
    for (std::size_t c = stage; c < pipe.chunks(); c += stages) {
      parameters += pipe.costs(c).parameters;
      experts += pipe.costs(c).expert_parameters;
    }
    const Bytes state = least_state(query, plan, parameters - experts, experts);
    const bool has_head = stage + 1 == stages;
    const bool saves = all_alike && (keeps_logits || !has_head);
    const ChunkCosts& first = pipe.costs(pipe.chunks() - stages + stage);
    Bytes dynamic{};
    if (saves) {
      dynamic = pipe.over_warm_up(static_cast<std::int64_t>(stage),
                                  [&](std::size_t c) { return pipe.costs(c).saved; });
    }
    // Of the chunk of the first backward, where that is known. Weights may be gathered for another
    // block than that with most temporaries.
    Bytes extra{};
    // Where autograd frees the logits, a layer's temporaries and weights come when these are gone.
    const bool frees_logits = has_head && query.software.memory.loss_copies > 0;
    if (saves && !frees_logits && pipe.order() != SlotOrder::other) {
      extra = fragmented(first.temporaries, allowed.fragmentation);
    }
    if (gathers && !frees_logits) {
      const bool keeps = !plan.sharding.reshard && stages == 1;
      extra = std::max(extra, keeps ? first.layers : first.largest_layer);
    }
    const Bytes held = libraries + fragmented(state, allowed.state_fragmentation) +
                       fragmented(dynamic, allowed.fragmentation) + extra;
    most = std::max(most, held);
  }
  return most;
}

namespace {

/// Bounds plans of one shape; what two plans in a row share is found once.
class ShapeBounds {
 public:
  ShapeBounds(const PlanQuery& query, BlockShape& shape) : query_{query}, shape_{shape} {}

  PlanBound operator()(const Plan& plan) {
    if (!last_ || !same_paths(*last_, plan)) {
      paths_.step = with_unexplained(paths_of(query_, plan, shape_).longest(), query_.software);
      paths_.kernels = kernels_of(query_, plan, shape_);
      last_ = &plan;
    }
    PlanBound bound = paths_;
    bound.memory = memory_floor(query_, plan, shape_);
    return bound;
  }

 private:
  /// Of two plans of the shape: whether their chunks, orders and phases are the same.
  static bool same_paths(const Plan& a, const Plan& b) {
    return a.pipeline == b.pipeline && a.stages.virtual_stages == b.stages.virtual_stages &&
           a.stages.schedule == b.stages.schedule && a.stages.layers == b.stages.layers &&
           a.stages.embedding_counts == b.stages.embedding_counts &&
           a.stages.by_time == b.stages.by_time && a.stages.table.empty() &&
           b.stages.table.empty() &&
           a.stages.deferred_head_gradients == b.stages.deferred_head_gradients &&
           a.recompute.layers == b.recompute.layers && a.recompute.every == b.recompute.every &&
           a.micro_batches() == b.micro_batches() &&
           models::shards_gradients(a) == models::shards_gradients(b);
  }

  const PlanQuery& query_;
  BlockShape& shape_;
  const Plan* last_ = nullptr;
  PlanBound paths_;
};

/// A step waits for its input; one that varies takes no less than its mean.
Time bound_with_data(const PlanQuery& query, const PlacedPlan& placed, Time step,
                     models::Question& question) {
  question.plan = placed.plan;
  question.assumptions.clear();
  take_data(query, question);
  models::DataRequest request = *question.data;
  request.jitter = {};
  return models::data_lane(
             request, models::demand_of(request, placed.plan, question.cluster.node.gpus), step)
      .step;
}

}  // namespace

std::vector<PlanBound> bounds_of(const PlanQuery& query, const std::vector<PlacedPlan>& plans,
                                 const Workers& workers, BlockShapes& shapes) {
  struct BoundGroup {
    BlockShapes::Slot* slot = nullptr;
    std::vector<std::size_t> plans;
  };
  std::unordered_map<BlockShapes::Slot*, std::size_t> known;
  std::vector<BoundGroup> groups;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    BlockShapes::Slot& slot = shapes.slot(shape_key(plans[i].plan, query.cluster.node.gpus));
    const auto [found, fresh] = known.try_emplace(&slot, groups.size());
    if (fresh) groups.push_back({&slot, {}});
    groups[found->second].plans.push_back(i);
  }
  std::vector<PlanBound> bounds(plans.size());
  const bool all = workers.work_through(groups.size(), [&](std::size_t g, unsigned) {
    BlockShapes::Slot& slot = *groups[g].slot;
    const PlacedPlan& first = plans[groups[g].plans.front()];
    if (!slot) slot = std::make_unique<BlockShape>(query, first);
    ShapeBounds bound{query, *slot};
    std::optional<models::Question> reading;
    if (query.data) reading = question_of(query, first);
    for (const std::size_t i : groups[g].plans) {
      bounds[i] = bound(plans[i].plan);
      if (reading) bounds[i].step = bound_with_data(query, plans[i], bounds[i].step, *reading);
    }
  });
  if (!all) bounds.clear();
  return bounds;
}

}  // namespace orrery::scenarios
