#pragma once
// Instructions that reduce a gradient bucket between data-parallel ranks, plain or compressed.
// Where they stand in the list is decided by models/lowering/gradient_reduction.cpp.

#include <map>
#include <string>
#include <vector>

#include "models/lowering/segments.hpp"

namespace orrery::models {

/// Makes the instructions of buckets.
///   none       one reduction
///   fp16       a cast, a reduction, a cast back
///   top-k      all-gathers of the largest values and of their indices, then scatter-add
///   power-sgd  reduces one low-rank factor; second step: makes the other from it and reduces that
///   int8       all-to-all, so that every rank has all parts of its share; second step: sums them;
///              all-gather
/// Decompression awaits its own bucket only.
class BucketReduction {
 public:
  BucketReduction(Program& program, const BlockInputs& inputs)
      : program_{program}, inputs_{inputs} {}

  /// Compression and the first collective; in two-step methods the second step; decompression.
  struct Instructions {
    std::vector<Instruction> compress, second_step, decompress;
  };
  Instructions reduce(std::uint32_t rank_class, const Segment& segment, std::uint16_t chunk);

 private:
  struct Phases {
    std::uint32_t compress = 0, second_step = 0, decompress = 0;
  };

  /// One reduction, and another one of experts that have replicas of their own.
  std::vector<Instruction> plain(std::uint32_t rank_class, const Segment& segment,
                                 std::uint16_t chunk);
  /// The phases that compress and decompress a bucket of this size, made once.
  Phases phases_of(std::int64_t elements);
  /// The steps around a bucket's first collectives and its second, if its method has one.
  Instructions steps(std::vector<JointCollective> first, std::vector<JointCollective> second,
                     std::uint16_t chunk);
  Instruction add(JointCollective joint, std::uint16_t chunk);
  /// Enlarges a persistent buffer in which each bucket of a class has a part of its own, or makes
  /// it large enough for any bucket, where they use it one after another.
  enum class Buckets : std::uint8_t { apart, in_turn };
  static void hold(RankClass& ranks, std::string name, BufferKind kind, Bytes bytes,
                   Buckets share = Buckets::apart);
  Instructions reduce_all(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions gather_largest(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions reduce_factors(RankClass& ranks, JointCollective joint, std::uint16_t chunk);
  Instructions reduce_in_8_bits(RankClass& ranks, JointCollective joint, std::uint16_t chunk);

  Program& program_;
  const BlockInputs& inputs_;
  std::map<std::int64_t, Phases> phases_;
};

}  // namespace orrery::models
