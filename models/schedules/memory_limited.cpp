// Zero-bubble schedules by list scheduling with the slot costs at hand: each stage takes its slots
// in the order in which it could start them, within a limit on live activations.

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

namespace {

/// What a stage runs first if both are ready. Backward goes before either, because other stages
/// wait for it.
enum class Prefers : std::uint8_t { forward, weight_gradient };

constexpr double never_ready = std::numeric_limits<double>::infinity();

/// Simulates all stages without transfers: a slot that is ready starts as soon as its stage is
/// free.
class ListScheduler {
 public:
  ListScheduler(const PipelineShape& shape, double limit, Prefers prefers)
      : shape_{shape}, limit_{limit}, prefers_{prefers} {
    const auto count = static_cast<std::size_t>(shape.micro_batches);
    for (std::int64_t s = 0; s < shape.stages; ++s) {
      const auto chunk = static_cast<std::size_t>(s);
      Stage& stage = stages_.emplace_back();
      if (!shape.costs.empty()) stage.costs = shape.costs[chunk];
      stage.forward_ready.assign(count, s == 0 ? 0 : never_ready);
      stage.backward_ready.assign(count, never_ready);
    }
  }

  std::vector<Slots> run() {
    for (std::size_t s = 0; s < stages_.size(); ++s) wake(s, 0);
    while (!events_.empty()) {
      const auto [at, s] = events_.top();
      events_.pop();
      if (stages_[s].free <= at) decide(s, at);
    }
    std::vector<Slots> all;
    for (Stage& each : stages_) all.push_back(std::move(each.slots));
    return all;
  }

 private:
  struct Stage {
    SlotCosts costs;
    Slots slots;
    std::vector<double> forward_ready, backward_ready;              // by micro-batch
    std::size_t forwards = 0, backwards = 0, weight_gradients = 0;  // so far
    double free = 0, held = 0;  // when it is free; live activations, in micro-batches
  };

  void wake(std::size_t s, double at) { events_.emplace(at, s); }

  void decide(std::size_t s, double now) {
    Stage& stage = stages_[s];
    const auto count = stage.forward_ready.size();
    const bool backward = stage.backwards < count && stage.backward_ready[stage.backwards] <= now;
    const bool fits = stage.held + 1 <= limit_ + 1e-9;
    const bool forward =
        fits && stage.forwards < count && stage.forward_ready[stage.forwards] <= now;
    const bool weights = stage.weight_gradients < stage.backwards;
    if (backward) return run_backward(s, now);
    if (forward && (!weights || prefers_ == Prefers::forward)) return run_forward(s, now);
    if (weights) return run_weight_gradient(s, now);
  }

  void begin(std::size_t s, SlotKind kind, std::size_t micro_batch, double end) {
    Stage& stage = stages_[s];
    stage.slots.push_back(slot_of(kind, shape_, static_cast<std::int64_t>(s), 0,
                                  static_cast<std::int64_t>(micro_batch)));
    stage.free = end;
    wake(s, end);
  }

  void run_forward(std::size_t s, double now) {
    Stage& stage = stages_[s];
    const std::size_t mb = stage.forwards++;
    stage.held += 1;
    const double end = now + stage.costs.forward;
    begin(s, SlotKind::forward, mb, end);
    const bool last = s + 1 == stages_.size();
    (last ? stage.backward_ready : stages_[s + 1].forward_ready)[mb] = end;
    if (!last) wake(s + 1, end);
  }

  void run_backward(std::size_t s, double now) {
    Stage& stage = stages_[s];
    const std::size_t mb = stage.backwards++;
    stage.held -= 1 - stage.costs.kept;
    const double end = now + stage.costs.backward;
    begin(s, SlotKind::backward, mb, end);
    if (s == 0) return;
    stages_[s - 1].backward_ready[mb] = end;
    wake(s - 1, end);
  }

  void run_weight_gradient(std::size_t s, double now) {
    Stage& stage = stages_[s];
    stage.held -= stage.costs.kept;
    begin(s, SlotKind::weight_gradient, stage.weight_gradients++,
          now + stage.costs.weight_gradient);
  }

  using Event = std::pair<double, std::size_t>;

  const PipelineShape& shape_;
  double limit_;
  Prefers prefers_;
  std::vector<Stage> stages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

/// The fastest of three orders: list scheduling with either preference, and the handcrafted
/// schedule, which needs no more memory.
std::vector<Slots> fastest(const PipelineShape& shape, double limit,
                           void (*handcrafted)(const PipelineShape&, std::int64_t, Slots&)) {
  std::vector<Slots> best(static_cast<std::size_t>(shape.stages));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    handcrafted(shape, stage, best[static_cast<std::size_t>(stage)]);
  }
  double least = duration_of(best, shape);
  for (const Prefers each : {Prefers::forward, Prefers::weight_gradient}) {
    std::vector<Slots> found = ListScheduler{shape, limit, each}.run();
    const double duration = duration_of(found, shape);
    if (duration >= least) continue;
    least = duration;
    best = std::move(found);
  }
  return best;
}

}  // namespace

bool splits_backward(const std::vector<Slots>& all) {
  return std::ranges::any_of(all, [](const Slots& slots) {
    return std::ranges::any_of(
        slots, [](const ScheduleSlot& each) { return each.kind == SlotKind::weight_gradient; });
  });
}

/// Runs the slots of every stage in order, each as soon as its inputs are ready.
double duration_of(const std::vector<Slots>& all, const PipelineShape& shape) {
  const auto chunks = static_cast<std::size_t>(shape.chunks());
  const auto count = static_cast<std::size_t>(shape.micro_batches);
  std::vector<double> forward(chunks * count, never_ready), backward(chunks * count, never_ready);
  const std::size_t of_copy = chunks / static_cast<std::size_t>(shape.copies);
  std::vector<double> free(all.size(), 0);
  std::vector<std::size_t> at(all.size(), 0);
  const bool split = splits_backward(all);
  const auto run = [&](std::size_t s) {
    const ScheduleSlot& slot = all[s][at[s]];
    const std::size_t here = slot.chunk * count + slot.micro_batch;
    const SlotCosts costs = shape.costs.empty() ? SlotCosts{} : shape.costs[slot.chunk];
    double ready = 0, cost = costs.weight_gradient;
    if (slot.kind == SlotKind::forward) {
      cost = costs.forward;
      if (slot.chunk % of_copy > 0) ready = forward[here - count];
    } else if (slot.kind == SlotKind::backward) {
      cost = costs.backward + (split ? 0 : costs.weight_gradient);
      ready = slot.chunk % of_copy + 1U < of_copy ? std::max(forward[here], backward[here + count])
                                                  : forward[here];
    }
    if (ready == never_ready) return false;
    free[s] = std::max(free[s], ready) + cost;
    if (slot.kind == SlotKind::forward) forward[here] = free[s];
    if (slot.kind == SlotKind::backward) backward[here] = free[s];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t s = 0; s < all.size(); ++s) {
      for (; at[s] < all[s].size() && run(s); ++at[s]) moved = true;
    }
  }
  for (std::size_t s = 0; s < all.size(); ++s) {
    if (at[s] < all[s].size()) return never_ready;
  }
  return *std::ranges::max_element(free);
}

/// ZB-1p: on every stage at most the activations of 1F1B's first stage, those of `stages`
/// micro-batches.
/// Source  Qi et al. 2023, section 3: their algorithm profiles, and searches a grid; here costs are
///         counted FLOPs and only three orders are compared
std::vector<Slots> zero_bubble_1p(const PipelineShape& shape) {
  return fastest(shape, static_cast<double>(shape.stages), zero_bubble_h1);
}

/// ZB-2p: at most twice as many activations.
std::vector<Slots> zero_bubble_2p(const PipelineShape& shape) {
  return fastest(shape, 2 * static_cast<double>(shape.stages), zero_bubble_h2);
}

}  // namespace orrery::models
