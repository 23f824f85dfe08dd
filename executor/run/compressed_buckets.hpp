#pragma once
// Gradient buckets that are compressed on their way: what each of them works in, and the phases
// that compress it, or undo that.

#include <map>
#include <string>
#include <vector>

#include "executor/run/weights.hpp"

namespace orrery::executor {

class CompressedBuckets {
 public:
  CompressedBuckets(const RankContext& rank, const Weights& weights, HeldMemory& memory);

  bool any() const { return !forms_.empty(); }
  /// Runs the phase of an instruction on its bucket.
  void run(models::Token i);
  /// What a reduction sends: the narrow copy, the largest values, their places, or a factor.
  CollectiveCall call_of(models::Token i) const;
  /// What is kept from step to step begins anew: gradients that were not finite are in it.
  void forget();

 private:
  /// One bucket's compressed forms: by the name that its phases share, and which of them are sent
  /// and received, by JointCollective::part. What is summed is received where it was.
  struct Forms {
    std::map<std::string, std::byte*> held{};
    std::vector<std::byte*> sent{}, received{};
  };

  /// What goes on from step to step: a bucket's rest, a factor to begin with.
  struct CarriedState {
    const models::Operand* of = nullptr;
    std::size_t bucket = 0;
    std::byte* data = nullptr;
  };

  std::uint32_t reduction_of(models::Token i) const;
  std::size_t bucket_of(models::Token i) const;
  const models::Block& block_of(models::Token i) const;
  void hold_parts(const models::Block& block, std::size_t bucket, HeldMemory& memory);
  std::byte* hold(const models::Operand& of, std::size_t bucket, HeldMemory& memory);
  void begin(const models::Operand& of, std::size_t bucket, std::byte* to) const;
  void draw(const models::Operand& of, std::size_t bucket, std::byte* to) const;
  std::vector<View> views_of(const models::Block& block, std::size_t bucket) const;

  const RankContext& rank_;
  const Weights& weights_;
  std::map<std::size_t, Forms> forms_;  // by the layout's bucket
  std::vector<CarriedState> kept_;
  std::byte* temporary_ = nullptr;  // of every bucket's phases, one after another
};

}  // namespace orrery::executor
