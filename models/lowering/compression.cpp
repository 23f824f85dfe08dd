#include "models/lowering/compression.hpp"

#include "models/plan/compression.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace orrery::models {

namespace {

Instruction aside(std::uint32_t phase, std::uint16_t chunk, std::uint32_t awaits) {
  Instruction each;
  each.op = Opcode::compress;
  each.chunk = chunk;
  each.target = phase;
  each.awaits = awaits;
  return each;
}

}  // namespace

std::uint32_t BucketReduction::add_phase(Block block) {
  program_.phases.push_back(
      {block.name, {{static_cast<std::uint32_t>(program_.blocks.size()), -1, 1}}});
  program_.blocks.push_back(std::move(block));
  return static_cast<std::uint32_t>(program_.phases.size() - 1);
}

BucketReduction::Phases BucketReduction::phases_of(std::int64_t elements) {
  const auto [known, fresh] = phases_.try_emplace(elements);
  if (!fresh) return known->second;
  Phases& made = known->second;
  if (inputs_.plan.compression == Compression::power_sgd) {
    LowRankBlocks blocks = low_rank_blocks(inputs_, elements);
    made.compress = add_phase(std::move(blocks.compress));
    made.second_step = add_phase(std::move(blocks.second_step));
    made.decompress = add_phase(std::move(blocks.decompress));
    return made;
  }
  if (inputs_.plan.compression == Compression::int8) {
    ByteBlocks blocks = byte_blocks(inputs_, elements);
    made.compress = add_phase(std::move(blocks.compress));
    made.second_step = add_phase(std::move(blocks.second_step));
    made.decompress = add_phase(std::move(blocks.decompress));
    return made;
  }
  const bool narrows = inputs_.plan.compression == Compression::fp16;
  BlockPair pair = narrows ? narrowing_blocks(inputs_, elements) : top_k_blocks(inputs_, elements);
  made.compress = add_phase(std::move(pair.forward));
  made.decompress = add_phase(std::move(pair.backward));
  return made;
}

Instruction BucketReduction::add(JointCollective joint, std::uint16_t chunk) {
  program_.collectives.push_back(std::move(joint));
  Instruction each;
  each.op = Opcode::reduce_gradient;
  each.chunk = chunk;
  each.target = static_cast<std::uint32_t>(program_.collectives.size() - 1);
  return each;
}

/// Enlarges a persistent buffer in which each bucket of a class has a part of its own.
void BucketReduction::hold(RankClass& ranks, std::string name, BufferKind kind, Bytes bytes) {
  for (PersistentBuffer& each : ranks.persistent) {
    if (each.name != name) continue;
    each.bytes += bytes;
    return;
  }
  ranks.persistent.push_back({std::move(name), kind, bytes});
}

/// Makes a persistent buffer large enough for any bucket of a class; they use it one after another.
void BucketReduction::hold_largest(RankClass& ranks, std::string name, BufferKind kind,
                                   Bytes bytes) {
  for (PersistentBuffer& each : ranks.persistent) {
    if (each.name != name) continue;
    each.bytes = std::max(each.bytes, bytes);
    return;
  }
  ranks.persistent.push_back({std::move(name), kind, bytes});
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
  switch (inputs_.plan.compression) {
    case Compression::none:
      break;
    case Compression::fp16:
      return reduce_all(ranks, std::move(joint), chunk);
    case Compression::top_k:
      return gather_largest(ranks, std::move(joint), chunk);
    case Compression::power_sgd:
      return reduce_factors(ranks, std::move(joint), chunk);
    case Compression::int8:
      return trade_bytes(ranks, std::move(joint), chunk);
  }
  return {plain(rank_class, segment, chunk), {}, {}};
}

BucketReduction::Instructions BucketReduction::reduce_all(RankClass& ranks, JointCollective joint,
                                                          std::uint16_t chunk) {
  const Phases phases = phases_of(joint.elements);
  joint.dtype = DType::fp16;
  joint.bytes = bytes_in(DType::fp16, joint.elements);
  hold(ranks, "narrow", BufferKind::staging, joint.bytes);
  Instructions all{{aside(phases.compress, chunk, no_binding)}, {}, {}};
  all.compress.push_back(add(std::move(joint), chunk));
  all.decompress.push_back(aside(phases.decompress, chunk, all.compress.back().target));
  return all;
}

BucketReduction::Instructions BucketReduction::gather_largest(RankClass& ranks,
                                                              JointCollective joint,
                                                              std::uint16_t chunk) {
  const Phases phases = phases_of(joint.elements);
  const std::int64_t own = kept_by_top_k(inputs_.plan, joint.elements);
  const std::int64_t replicas = program_.mesh.degree(MeshAxis::data);
  JointCollective places{.name = joint.name + ".indices",
                         .kind = Collective::all_gather,
                         .communicator = joint.communicator,
                         .dtype = DType::int32,
                         .bytes = bytes_in(DType::int32, own * replicas),
                         .classes = joint.classes,
                         .first_unit = joint.first_unit,
                         .part = 1};
  joint.kind = Collective::all_gather;
  joint.bytes = bytes_in(joint.dtype, own * replicas);
  hold(ranks, "residual", BufferKind::optimizer, bytes_in(program_.formats.state, joint.elements));
  hold(ranks, "values", BufferKind::staging, bytes_in(joint.dtype, own));
  hold(ranks, "indices", BufferKind::staging, bytes_in(DType::int32, own));
  hold(ranks, "values.all", BufferKind::staging, joint.bytes);
  hold(ranks, "indices.all", BufferKind::staging, places.bytes);
  Instructions all{{aside(phases.compress, chunk, no_binding)}, {}, {}};
  all.compress.push_back(add(std::move(joint), chunk));
  all.compress.push_back(add(std::move(places), chunk));
  all.decompress.push_back(aside(phases.decompress, chunk, all.compress.back().target));
  return all;
}

BucketReduction::Instructions BucketReduction::reduce_factors(RankClass& ranks,
                                                              JointCollective joint,
                                                              std::uint16_t chunk) {
  const Phases phases = phases_of(joint.elements);
  const auto [rows, columns, rank] = low_rank_shape(inputs_.plan, joint.elements);
  const DType state = program_.formats.state;
  joint.low_rank_factor = true;
  joint.dtype = state;
  joint.bytes = bytes_in(state, rows * rank);
  JointCollective other{.name = joint.name + ".q",
                        .kind = Collective::all_reduce,
                        .communicator = joint.communicator,
                        .dtype = state,
                        .bytes = bytes_in(state, columns * rank),
                        .classes = joint.classes,
                        .first_unit = joint.first_unit,
                        .part = 1,
                        .low_rank_factor = true};
  hold(ranks, "residual", BufferKind::optimizer, bytes_in(state, rows * columns));
  hold(ranks, "q", BufferKind::optimizer, other.bytes);
  hold(ranks, "p", BufferKind::staging, joint.bytes);
  hold_largest(ranks, "matrix", BufferKind::staging, bytes_in(state, rows * columns));
  Instructions all{{aside(phases.compress, chunk, no_binding)}, {}, {}};
  all.compress.push_back(add(std::move(joint), chunk));
  all.second_step.push_back(aside(phases.second_step, chunk, all.compress.back().target));
  all.second_step.push_back(add(std::move(other), chunk));
  all.decompress.push_back(aside(phases.decompress, chunk, all.second_step.back().target));
  return all;
}

BucketReduction::Instructions BucketReduction::trade_bytes(RankClass& ranks, JointCollective joint,
                                                           std::uint16_t chunk) {
  const Phases phases = phases_of(joint.elements);
  const ByteShare share = byte_share(inputs_.plan, joint.elements);
  const Bytes own{share.bytes()}, all_shares = own * inputs_.plan.data;
  joint.kind = Collective::all_to_all;
  joint.dtype = DType::uint8;
  joint.bytes = all_shares;
  JointCollective sums{.name = joint.name + ".sums",
                       .kind = Collective::all_gather,
                       .communicator = joint.communicator,
                       .dtype = DType::uint8,
                       .bytes = all_shares,
                       .classes = joint.classes,
                       .first_unit = joint.first_unit,
                       .part = 0};
  for (const char* each : {"bytes", "bytes.all", "sums.bytes"}) {
    hold(ranks, each, BufferKind::staging, all_shares);
  }
  hold(ranks, "sum.bytes", BufferKind::staging, own);
  hold_largest(ranks, "sum", BufferKind::staging, bytes_in(program_.formats.state, share.elements));
  Instructions all{{aside(phases.compress, chunk, no_binding)}, {}, {}};
  all.compress.push_back(add(std::move(joint), chunk));
  all.second_step.push_back(aside(phases.second_step, chunk, all.compress.back().target));
  all.second_step.push_back(add(std::move(sums), chunk));
  all.decompress.push_back(aside(phases.decompress, chunk, all.second_step.back().target));
  return all;
}

}  // namespace orrery::models
