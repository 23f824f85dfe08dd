#pragma once
// A bucket's reduction between data-parallel ranks, plain or compressed.

#include <map>
#include <string>
#include <vector>

#include "models/lowering/segments.hpp"

namespace orrery::models {

/// Makes the instructions of buckets. Plain, a bucket is one reduction. In fp16 a cast stands
/// before it and one after; of top-k's largest, values and places are gathered in two collectives;
/// of PowerSGD's factors one is summed, from which the other is made and summed (`between`); of
/// bytes every rank gets its share in an all-to-all, adds it up (`between`), and gathers all sums.
/// Decompression awaits its own bucket only.
class BucketReduction {
 public:
  BucketReduction(Program& program, const BlockInputs& inputs)
      : program_{program}, inputs_{inputs} {}

  struct Instructions {
    std::vector<Instruction> there, between, back;
  };
  Instructions reduce(std::uint32_t rank_class, const Segment& segment, std::uint16_t chunk);

 private:
  struct Phases {
    std::uint32_t there = 0, between = 0, back = 0;
  };

  /// One reduction, and one of the experts that have replicas of their own.
  std::vector<Instruction> plain(std::uint32_t rank_class, const Segment& segment,
                                 std::uint16_t chunk);
  /// The phases that compress a bucket of this size and undo it, made once.
  Phases phases_of(std::int64_t elements);
  std::uint32_t add_phase(Block block);
  Instruction add(JointCollective joint, std::uint16_t chunk);
  void hold(RankClass& ranks, std::string name, BufferKind kind, Bytes bytes);
  void hold_largest(RankClass& ranks, std::string name, BufferKind kind, Bytes bytes);
  Instructions reduce_all(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions gather_largest(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions reduce_factors(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions trade_bytes(RankClass& ranks, JointCollective joint, std::uint16_t chunk);

  Program& program_;
  const BlockInputs& inputs_;
  std::map<std::int64_t, Phases> phases_;
};

}  // namespace orrery::models
