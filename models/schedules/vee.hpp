#pragma once
// A builder for the slots of one stage with two chunks: those of a model placed as a V, or one of
// each of two copies of it. Each call adds the slot of the next micro-batch of one of the chunks.
// Slots of micro-batches that a step does not have are left out.

#include <array>
#include <deque>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

class VeeStage {
 public:
  VeeStage(const PipelineShape& shape, std::int64_t stage, Slots& slots)
      : chunks_{{{stage, 0, shape.micro_batches},
                 {2 * shape.stages - 1 - stage, 0, shape.micro_batches}}},
        slots_{slots} {}
  struct VeeSide {
    std::int64_t chunk = 0;
    std::int64_t first = 0, end = 0;  // its micro-batches: `first` up to, not including, `end`
  };
  VeeStage(const std::array<VeeSide, 2>& chunks, Slots& slots) : chunks_{chunks}, slots_{slots} {}

  std::int64_t forwards_of(std::size_t which) const { return forwards_[which]; }
  void forwards(std::size_t which, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      add(SlotKind::forward, which, forwards_[which]++);
    }
  }
  /// Adds the input gradient; its weight gradient is deferred.
  void input_gradient(std::size_t which) {
    waiting_.push_back({which, backwards_[which]});
    add(SlotKind::backward, which, backwards_[which]++);
  }
  /// Adds the input gradient and its weight gradient.
  void backward(std::size_t which) {
    input_gradient(which);
    add(SlotKind::weight_gradient, which, waiting_.back().micro_batch);
    waiting_.pop_back();
  }
  /// Adds the weight gradient that was deferred first: of either chunk; of one chunk; or all those
  /// of one chunk.
  void weight_gradient() {
    const Waiting next = waiting_.front();
    waiting_.pop_front();
    add(SlotKind::weight_gradient, next.which, next.micro_batch);
  }
  void weight_gradient_of(std::size_t which) {
    for (auto each = waiting_.begin(); each != waiting_.end(); ++each) {
      if (each->which != which) continue;
      add(SlotKind::weight_gradient, which, each->micro_batch);
      waiting_.erase(each);
      return;
    }
  }
  void weight_gradients_of(std::size_t which) {
    for (std::size_t i = waiting_.size(); i-- > 0;) weight_gradient_of(which);
  }

 private:
  struct Waiting {
    std::size_t which = 0;
    std::int64_t micro_batch = 0;
  };

  void add(SlotKind kind, std::size_t which, std::int64_t micro_batch) {
    const VeeSide& side = chunks_[which];
    if (side.first + micro_batch >= side.end) return;
    slots_.push_back({.kind = kind,
                      .chunk = static_cast<std::uint16_t>(side.chunk),
                      .micro_batch = static_cast<std::uint32_t>(side.first + micro_batch)});
  }

  std::array<VeeSide, 2> chunks_;
  Slots& slots_;
  std::array<std::int64_t, 2> forwards_{}, backwards_{};
  std::deque<Waiting> waiting_;
};

}  // namespace orrery::models
