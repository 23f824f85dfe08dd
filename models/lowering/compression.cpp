#include "models/lowering/compression.hpp"

#include "models/plan/compression.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::models {

namespace {

/// A further collective of the same bucket, which counts none of its gradients again.
JointCollective after(const JointCollective& joint, const char* suffix, Collective kind,
                      DType dtype, Bytes bytes) {
  return {.name = joint.name + suffix,
          .kind = kind,
          .communicator = joint.communicator,
          .dtype = dtype,
          .bytes = bytes,
          .classes = joint.classes,
          .first_unit = joint.first_unit};
}

}  // namespace

BucketReduction::Phases BucketReduction::phases_of(std::int64_t elements) {
  const auto [known, fresh] = phases_.try_emplace(elements);
  if (!fresh) return known->second;
  CompressionBlocks blocks = compression_blocks(inputs_, elements);
  Phases& made = known->second;
  made.compress = program_.add_phase(std::move(blocks.compress));
  if (!blocks.second_step.operations.empty()) {
    made.second_step = program_.add_phase(std::move(blocks.second_step));
  }
  made.decompress = program_.add_phase(std::move(blocks.decompress));
  return made;
}

Instruction BucketReduction::add(JointCollective joint, std::uint16_t chunk) {
  return {.op = Opcode::reduce_gradient,
          .chunk = chunk,
          .target = appended(program_.collectives, std::move(joint))};
}

BucketReduction::Instructions BucketReduction::steps(std::vector<JointCollective> first,
                                                     std::vector<JointCollective> second,
                                                     std::uint16_t chunk) {
  const Phases phases = phases_of(first.front().elements);
  std::uint32_t awaited = no_binding;
  const auto step = [&](std::uint32_t phase, std::vector<JointCollective>& joints) {
    std::vector<Instruction> made{
        {.op = Opcode::compress, .chunk = chunk, .target = phase, .awaits = awaited}};
    for (JointCollective& each : joints) made.push_back(add(std::move(each), chunk));
    awaited = made.back().target;
    return made;
  };
  Instructions all;
  std::vector<JointCollective> none;
  all.compress = step(phases.compress, first);
  if (!second.empty()) all.second_step = step(phases.second_step, second);
  all.decompress = step(phases.decompress, none);
  return all;
}

void BucketReduction::hold(RankClass& ranks, std::string name, BufferKind kind, Bytes bytes,
                           Buckets share) {
  const auto known = std::ranges::find(ranks.persistent, name, &PersistentBuffer::name);
  if (known == ranks.persistent.end()) {
    ranks.persistent.push_back({std::move(name), kind, bytes});
  } else {
    known->bytes = share == Buckets::apart ? known->bytes + bytes : std::max(known->bytes, bytes);
  }
}

std::vector<Instruction> BucketReduction::plain(std::uint32_t rank_class, const Segment& segment,
                                                std::uint16_t chunk) {
  std::vector<Instruction> made;
  if (program_.shards() > 1 && segment.parameters > 0) {
    JointCollective joint = reduction_of(program_, rank_class, segment);
    const auto copies = reduction_of_copies(program_, joint);
    made.push_back(add(std::move(joint), chunk));
    if (copies) made.push_back(add(*copies, chunk));
  }
  if (segment.experts.units > 0 && program_.mesh.degree(MeshAxis::expert_data) > 1) {
    made.push_back(add(expert_reduction_of(program_, rank_class, segment), chunk));
  }
  return made;
}

BucketReduction::Instructions BucketReduction::reduce(std::uint32_t rank_class,
                                                      const Segment& segment, std::uint16_t chunk) {
  JointCollective joint = reduction_of(program_, rank_class, segment);
  RankClass& ranks = program_.classes[rank_class];
  switch (inputs_.plan.compression.kind) {
    case Compression::none:
      break;
    case Compression::fp16:
      return reduce_all(ranks, std::move(joint), chunk);
    case Compression::top_k:
      return gather_largest(ranks, std::move(joint), chunk);
    case Compression::power_sgd:
      return reduce_factors(ranks, std::move(joint), chunk);
    case Compression::int8:
      return reduce_in_8_bits(ranks, std::move(joint), chunk);
  }
  return {plain(rank_class, segment, chunk), {}, {}};
}

BucketReduction::Instructions BucketReduction::reduce_all(RankClass& ranks, JointCollective joint,
                                                          std::uint16_t chunk) {
  joint.dtype = DType::fp16;
  joint.bytes = bytes_in(DType::fp16, joint.elements);
  hold(ranks, "narrow", BufferKind::staging, joint.bytes);
  return steps({std::move(joint)}, {}, chunk);
}

BucketReduction::Instructions BucketReduction::gather_largest(RankClass& ranks,
                                                              JointCollective joint,
                                                              std::uint16_t chunk) {
  const std::int64_t own = kept_by_top_k(inputs_.plan, joint.elements);
  const std::int64_t replicas = program_.mesh.degree(MeshAxis::data);
  JointCollective indices = after(joint, ".indices", Collective::all_gather, DType::int32,
                                  bytes_in(DType::int32, own * replicas));
  indices.part = 1;
  joint.kind = Collective::all_gather;
  joint.bytes = bytes_in(joint.dtype, own * replicas);
  hold(ranks, "residual", BufferKind::optimizer, bytes_in(program_.formats.state, joint.elements));
  hold(ranks, "values", BufferKind::staging, bytes_in(joint.dtype, own));
  hold(ranks, "indices", BufferKind::staging, bytes_in(DType::int32, own));
  hold(ranks, "values.all", BufferKind::staging, joint.bytes);
  hold(ranks, "indices.all", BufferKind::staging, indices.bytes);
  return steps({std::move(joint), std::move(indices)}, {}, chunk);
}

BucketReduction::Instructions BucketReduction::reduce_factors(RankClass& ranks,
                                                              JointCollective joint,
                                                              std::uint16_t chunk) {
  const auto [rows, columns, rank] = low_rank_shape(inputs_.plan, joint.elements);
  const DType state = program_.formats.state;
  joint.low_rank_factor = true;
  joint.dtype = state;
  joint.bytes = bytes_in(state, rows * rank);
  JointCollective other =
      after(joint, ".q", Collective::all_reduce, state, bytes_in(state, columns * rank));
  other.part = 1;
  other.low_rank_factor = true;
  hold(ranks, "residual", BufferKind::optimizer, bytes_in(state, rows * columns));
  hold(ranks, "q", BufferKind::optimizer, other.bytes);
  hold(ranks, "p", BufferKind::staging, joint.bytes);
  hold(ranks, "matrix", BufferKind::staging, bytes_in(state, rows * columns), Buckets::in_turn);
  return steps({std::move(joint)}, {std::move(other)}, chunk);
}

BucketReduction::Instructions BucketReduction::reduce_in_8_bits(RankClass& ranks,
                                                                JointCollective joint,
                                                                std::uint16_t chunk) {
  const ByteShare share = byte_share(inputs_.plan, joint.elements);
  const Bytes own{share.bytes()}, all_shares = own * inputs_.plan.data;
  joint.kind = Collective::all_to_all;
  joint.dtype = DType::uint8;
  joint.bytes = all_shares;
  JointCollective sums = after(joint, ".sums", Collective::all_gather, DType::uint8, all_shares);
  for (const char* each : {"bytes", "bytes.all", "sums.bytes"}) {
    hold(ranks, each, BufferKind::staging, all_shares);
  }
  hold(ranks, "sum.bytes", BufferKind::staging, own);
  hold(ranks, "sum", BufferKind::staging, bytes_in(program_.formats.state, share.elements),
       Buckets::in_turn);
  return steps({std::move(joint)}, {std::move(sums)}, chunk);
}

}  // namespace orrery::models
