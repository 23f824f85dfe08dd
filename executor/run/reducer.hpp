#pragma once
// What ranks do together between blocks: gradients reduced, plain or compressed, and summed over
// what replicates them; weights gathered; the number that ranks add up. Calls run on the data lane
// and end in the order in which they begin; each is waited for by what reads it.

#include <vector>

#include "executor/run/compressed_buckets.hpp"

namespace orrery::executor {

class Reducer {
 public:
  Reducer(const RankContext& rank, Weights& weights, HeldMemory& memory);

  // Instructions
  void reduce(models::Token i);
  void compress(models::Token i);
  void unshard(models::Token i);
  void tie(models::Token i);
  void gather(models::Token i);
  /// Of a step whose gradients were not finite nothing goes on.
  void forget_compressed() { compressed_.forget(); }

  /// What runs next reads the weights that this gather has filled.
  void use_gathered(models::Token last_gather);

  /// The working copies that other ranks own, where parameters are not sharded; after a load.
  void gather_all();

  /// 64 bytes for one number. Its sum over the ranks of a communicator is there when `sum_number`
  /// returns; `i` is the instruction that it belongs to, if any.
  std::byte* number() const { return number_; }
  void sum_number(std::uint16_t communicator, models::DType type,
                  models::Token i = models::no_token);

  void wait_for(models::Token collective);
  void wait_for_all();
  /// The bucket at this address holds nothing that is still on its way out.
  void wait_until_empty(const std::byte* bucket);
  void poll();

 private:
  PendingCall begin(models::Token i, std::uint16_t communicator);
  void start(CollectiveCall call, PendingCall pending);
  models::MeshView view_of(std::uint16_t communicator) const;
  void gather_parameters(models::Collective kind, const PendingCall& pending);
  void reduce_between_copies(models::Token i);
  void sum_copies(const PendingCall& pending);
  void sum_partial(PendingCall pending);
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
