#pragma once
// Compresses gradient buckets before their reduction and decompresses them after it: holds the
// buffers of the compressed forms and the state that carries over between steps, and runs the
// phases of compress instructions. The reductions are started by reducer.hpp.

#include <map>
#include <string>
#include <vector>

#include "executor/run/weights/weights.hpp"

namespace orrery::executor {

/// The compressed gradient buckets of one rank; none where the plan has no compression.
class CompressedBuckets {
 public:
  CompressedBuckets(const RankContext& rank, const Weights& weights, HeldMemory& memory);

  bool any() const { return !forms_.empty(); }
  /// Runs the phase of a compress instruction on its bucket.
  void run(models::Token i);
  /// The collective of a reduction, which sends a compressed form of the bucket: a copy of fewer
  /// bits, the largest values, their indices, or a low-rank factor.
  CollectiveCall call_of(models::Token i) const;
  /// Resets the state that carries over between steps, because gradients that were not finite have
  /// entered it.
  void forget();

 private:
  /// Buffers of one bucket's compressed forms: all of them by operand name, which its phases share,
  /// and those sent and received, by JointCollective::part. Summed forms are received in place.
  struct Forms {
    std::map<std::string, std::byte*> held{};
    std::vector<std::byte*> sent{}, received{};
  };

  /// State that carries over between steps: a bucket's residual (error feedback), or the PowerSGD
  /// factor that the next step starts from.
  struct CarriedState {
    const models::Operand* of = nullptr;
    std::size_t bucket = 0;
    std::byte* data = nullptr;
  };

  std::uint32_t reduction_of(models::Token i) const;
  std::size_t bucket_of(models::Token i) const {
    return rank_.layout.reduced(reduction_of(i)).first;
  }
  const models::Block& block_of(models::Token i) const;
  void hold_parts(const models::Block& block, std::size_t bucket, HeldMemory& memory);
  std::byte* hold(const models::Operand& of, std::size_t bucket, HeldMemory& memory);
  void begin(const models::Operand& of, std::size_t bucket, std::byte* to) const;
  void draw(const models::Operand& of, std::size_t bucket, std::byte* to) const;
  std::vector<View> views_of(const models::Block& block, std::size_t bucket) const;

  const RankContext& rank_;
  const Weights& weights_;
  std::map<std::size_t, Forms> forms_;  // by index into Layout::buckets()
  std::vector<CarriedState> kept_;
  std::byte* temporary_ = nullptr;  // shared by the phases of all buckets, which run in turn
};

}  // namespace orrery::executor
