#pragma once
// The collectives between blocks: reductions of gradient buckets (plain or compressed), sums of
// gradients of which several ranks hold a part or a copy, weight gathers, and sums of one number.
// Calls run on the data lane and end in the order in which they begin; whatever reads a result
// waits for its call. Collectives inside blocks are in blocks.hpp.

#include <vector>

#include "executor/run/reducer/compressed_buckets.hpp"

namespace orrery::executor {

/// Runs the joint collectives of one rank.
class Reducer {
 public:
  Reducer(const RankContext& rank, Weights& weights, HeldMemory& memory);

  // One method for each opcode.
  void reduce(models::Token i);
  void compress(models::Token i);
  void unshard(models::Token i);
  void sum_replicas(models::Token i);
  void gather(models::Token i);
  /// Resets the state of compression after a step whose gradients were not finite.
  void forget_compressed() { compressed_.forget(); }

  /// The phases that run next read the weights from the buffers that this gather, and the one that
  /// it completes, have filled.
  void use_gathered(models::Token last_gather);

  /// Gathers the working copies that other ranks own, where parameters are not sharded; after the
  /// initial draw or a load.
  void gather_all();

  /// 64 bytes for one number, which `sum_number` replaces by its sum over the ranks of a
  /// communicator; `i` is the instruction that the sum belongs to, if any.
  std::byte* number() const { return number_; }
  void sum_number(std::uint16_t communicator, models::DType type,
                  models::Token i = models::no_token);

  void wait_for(models::Token collective);
  void wait_for_all();
  /// Waits until no reduction in flight uses the bucket at this address.
  void wait_until_empty(const std::byte* bucket);
  /// Completes the oldest call if it has ended, so that its end is recorded when it happens.
  void poll();

 private:
  PendingCall begin(models::Token i, std::uint16_t communicator);
  void start(CollectiveCall call, PendingCall pending);
  models::MeshView view_of(std::uint16_t communicator) const;
  void gather_parameters(models::Collective kind, const PendingCall& pending);
  void reduce_between_copies(models::Token i);
  void sum_copies(const PendingCall& pending);
  void sum_partial(const PendingCall& pending);
  void sum_in_place(std::byte* at, std::int64_t count, models::DType type,
                    const PendingCall& pending);
  void sum_gradients(std::byte* at, std::int64_t count, const PendingCall& pending);
  const std::byte* fetched(const Bucket& bucket, const CollectiveCall& call);
  std::byte* gathered_at(models::Token gather, std::size_t first, std::size_t bucket) const;
  void wait(PendingCall& pending);

  const RankContext& rank_;
  Weights& weights_;
  CompressedBuckets compressed_;
  std::byte* number_;
  std::vector<PendingCall> pending_;
};

}  // namespace orrery::executor
