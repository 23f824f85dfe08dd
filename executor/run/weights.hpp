#pragma once
// The training state of one rank: parameters as kernels read them, their gradients, and what the
// optimizer updates. Where the optimizer's state is sharded (ZeRO), `local` counts the elements
// that this rank owns; `element` always counts those of the layout.
//
// Sharded gradients (ZeRO-2 and 3) are the owned sums, and backward fills buckets. Sharded
// parameters (ZeRO-3) are the owned ones, and all of a bucket lie where they were last gathered.

#include <span>
#include <vector>

#include "executor/run/held_memory.hpp"
#include "executor/run/moments.hpp"
#include "executor/run/rank_context.hpp"

namespace orrery::executor {

class Weights {
 public:
  Weights(const RankContext& rank, HeldMemory& memory);

  /// What every run begins with: functions of the seed and the index in the uncut model. Of the
  /// elements that this rank owns; their working copies do not follow yet. And of all that is not
  /// trained, which where adapters alone are is what an initial source has.
  void draw();
  /// Working copies of what this rank owns follow the masters.
  void follow_masters();

  const models::Formats& formats() const { return rank_.program.formats; }
  /// Does the optimizer keep parameters of its own, next to those that kernels read?
  bool separate_master() const {
    return formats().storage != formats().state || sharding_.optimizer_on_host;
  }

  /// For the running block.
  std::byte* parameter(std::int64_t element) const {
    return in_bucket(sharding_.parameters, gathered_, parameters_, formats().storage, element);
  }
  std::byte* gradient(std::int64_t element) const {
    return in_bucket(sharding_.gradients, filled_, gradients_, formats().gradient, element);
  }

  std::byte* frozen(std::int64_t element) const {
    return frozen_ + element * width_of(formats().storage);
  }

  /// Elements of what is not trained, from `local` on.
  void read_frozen(std::int64_t local, std::span<double> to) const;

  /// Of what this rank owns.
  std::byte* owned_gradient(std::int64_t element) const;
  std::byte* working(std::int64_t local) const {
    return owned(parameters_, sharding_.parameters, local, width_of(formats().storage));
  }
  /// Of gradients and parameters.
  std::byte* state(StateKind kind, std::int64_t local) const;
  const OptimizerMoments& moments() const { return moments_; }
  /// Elements in the state's format, gradients in their own.
  void read_state(StateKind kind, std::int64_t local, std::int64_t count, void* to) const;
  void load_state(StateKind kind, std::int64_t local, std::int64_t count, const void* from);
  void finish_loading() { moments_.finish_loading(); }
  std::int64_t width_of_state(StateKind kind) const {
    return width_of(kind == StateKind::gradient ? formats().gradient : formats().state);
  }
  /// Where the host updates: gradients as they come to it, working copies as they leave it.
  std::byte* arrived(std::int64_t local) const {
    return arrived_ + local * width_of(formats().gradient);
  }
  std::byte* leaving(std::int64_t local) const {
    return leaving_ + local * width_of(formats().storage);
  }
  void clear_gradients() { rank_.device.zero(gradients_, Bytes{gradient_bytes_}); }

  /// Backward fills the bucket that this reduction empties.
  void bind_filled(std::uint32_t collective);
  /// A reduction has ended: the owned piece is added to the sums, and the bucket is cleared for
  /// what fills it next.
  void add_to_sums(std::uint32_t collective, std::byte* filled);
  /// What runs next finds all parameters of a bucket there.
  void bind_gathered(std::size_t bucket, std::byte* at) { gathered_[bucket] = at; }

 private:
  std::byte* in_bucket(bool sharded, const std::vector<std::byte*>& buckets, std::byte* whole,
                       models::DType type, std::int64_t element) const;
  std::byte* owned(std::byte* buffer, bool sharded, std::int64_t local, std::int64_t width) const;
  void hold_buckets(HeldMemory& memory);
  void hold_state(HeldMemory& memory);
  void draw_trained();
  void draw_frozen();

  const RankContext& rank_;
  const models::StateSharding& sharding_;
  std::int64_t gradient_bytes_ = 0;
  std::byte *frozen_ = nullptr, *parameters_ = nullptr, *gradients_ = nullptr, *buckets_ = nullptr;
  OptimizerMoments moments_;
  std::byte* masters_ = nullptr;  // where they are separate
  std::byte *arrived_ = nullptr, *leaving_ = nullptr;
  std::vector<std::int64_t> bucket_offsets_;   // by JointCollective::buffer
  std::vector<std::byte*> filled_, gathered_;  // by the layout's bucket
  models::Operation accumulate_, narrow_;
};

}  // namespace orrery::executor
