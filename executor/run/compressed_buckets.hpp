#pragma once
// Gradient buckets that are compressed on their way: what each of them works in, and the phases
// that compress it, or undo that.

#include <map>
#include <vector>

#include "executor/run/weights.hpp"

namespace orrery::executor {

class CompressedBuckets {
 public:
  CompressedBuckets(const RankContext& rank, const Weights& weights, HeldMemory& memory);

  bool any() const { return !forms_.empty(); }
  /// Runs the phase of an instruction on its bucket.
  void run(models::Token i);
  /// What a reduction sends: the narrow copy, the largest values, or their places.
  CollectiveCall call_of(models::Token i) const;

 private:
  /// One bucket's compressed forms.
  struct Forms {
    bool in_place = false;                       // what is sent becomes what is received
    std::vector<std::byte*> sent{}, received{};  // by JointCollective::part
    std::byte* residual = nullptr;
  };

  std::uint32_t reduction_of(models::Token i) const;
  std::size_t bucket_of(models::Token i) const;
  void hold_parts(const models::Block& block, Forms& of, HeldMemory& memory);
  std::vector<View> views_of(const models::Block& block, std::size_t bucket) const;

  const RankContext& rank_;
  const Weights& weights_;
  std::map<std::size_t, Forms> forms_;  // by the layout's bucket
};

}  // namespace orrery::executor
