#pragma once
// The training state of one rank: the working parameters that kernels read, their gradients, and
// the master weights and moments that the optimizer updates. It has two indices: `element` counts
// the elements of the layout; `local` counts those that this rank owns where the optimizer's state
// is sharded (ZeRO).
//
// Where gradients are sharded (ZeRO-2 and 3), only the owned sums are held, and backward fills
// buckets. Where parameters are sharded (ZeRO-3), only the owned ones are held, and kernels read a
// bucket from the buffer that it was last gathered into.

#include <span>
#include <vector>

#include "executor/run/held_memory.hpp"
#include "executor/run/rank_context.hpp"
#include "executor/run/weights/moments.hpp"

namespace orrery::executor {

/// Parameters, gradients and optimizer state of one rank.
class Weights {
 public:
  Weights(const RankContext& rank, HeldMemory& memory);

  /// Sets the initial values of the elements that this rank owns, each a function of the seed and
  /// the index in the unsharded model; working copies are not updated yet. Sets frozen parameters,
  /// too: where only adapters are trained, an initial source has these alone.
  void draw();
  /// Updates the working copies of the elements that this rank owns from the master weights.
  void follow_masters();

  const models::Formats& formats() const { return rank_.program.formats; }
  /// Does the optimizer keep master parameters, separate from the working ones?
  bool separate_master() const {
    return formats().storage != formats().master || sharding_.optimizer_on_host;
  }

  /// Addresses of an element for the running block.
  std::byte* parameter(std::int64_t element) const {
    return in_bucket(sharding_.parameters, gathered_, parameters_, formats().storage, element);
  }
  std::byte* gradient(std::int64_t element) const {
    return in_bucket(sharding_.gradients, filled_, gradients_, formats().gradient, element);
  }

  std::byte* frozen(std::int64_t element) const {
    return frozen_ + element * width_of(formats().storage);
  }

  /// Reads frozen elements from `local` on.
  void read_frozen(std::int64_t local, std::span<double> to) const;

  /// Addresses of the gradient and the working copy of an element that this rank owns.
  std::byte* owned_gradient(std::int64_t element) const;
  std::byte* working(std::int64_t local) const {
    return owned(parameters_, sharding_.parameters, local, width_of(formats().storage));
  }
  /// Address of a gradient or a parameter as the optimizer reads it; not of moments.
  std::byte* state(StateKind kind, std::int64_t local) const;
  const OptimizerMoments& moments() const { return moments_; }
  /// Copy `count` elements from `local` on, in the state's format whatever the format of masters,
  /// gradients in their own.
  void read_state(StateKind kind, std::int64_t local, std::int64_t count, void* to) const;
  void load_state(StateKind kind, std::int64_t local, std::int64_t count, const void* from);
  void finish_loading() { moments_.finish_loading(); }
  std::int64_t width_of_state(StateKind kind) const {
    return width_of(kind == StateKind::gradient ? formats().gradient : formats().state);
  }
  /// Where the host updates: its memory for gradients copied from the device, and for working
  /// copies on their way back.
  std::byte* arrived(std::int64_t local) const {
    return arrived_ + local * width_of(formats().gradient);
  }
  std::byte* leaving(std::int64_t local) const {
    return leaving_ + local * width_of(formats().storage);
  }
  void clear_gradients() { rank_.device.zero(gradients_, Bytes{gradient_bytes_}); }

  /// From now on backward fills the bucket that this reduction empties.
  void bind_filled(std::uint32_t collective);
  /// Call when a reduction has ended: adds the owned piece to the sums, and clears the bucket for
  /// its next use.
  void add_to_sums(std::uint32_t collective, std::byte* filled);
  /// From now on kernels read the parameters of a bucket at this address.
  void bind_gathered(std::size_t bucket, std::byte* at) { gathered_[bucket] = at; }

 private:
  /// Writes parameters that are given in the state's format.
  void write_masters(const void* from, std::byte* to, std::int64_t count) const;
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
  std::byte* masters_ = nullptr;  // master weights where they are separate, then moments
  std::byte *arrived_ = nullptr, *leaving_ = nullptr;
  std::vector<std::int64_t> bucket_offsets_;   // by JointCollective::buffer
  std::vector<std::byte*> filled_, gathered_;  // by index into Layout::buckets()
  models::Operation accumulate_, narrow_;
};

}  // namespace orrery::executor
