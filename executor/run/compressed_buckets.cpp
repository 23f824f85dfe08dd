#include "executor/run/compressed_buckets.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::executor {

using models::Instruction;
using models::Token;

CompressedBuckets::CompressedBuckets(const RankContext& rank, const Weights& weights,
                                     HeldMemory& memory)
    : rank_{rank}, weights_{weights} {
  for (Token i = 0; i < rank_.ranks.instructions.size(); ++i) {
    if (rank_.instruction(i).op != models::Opcode::compress) continue;
    Forms& of = forms_[bucket_of(i)];
    of.in_place = rank_.program.collectives[reduction_of(i)].kind == models::Collective::all_reduce;
    hold_parts(rank_.program.blocks[rank_.invocations(i).front().block], of, memory);
  }
}

/// The reduction for which a compression makes its input, or whose sum a decompression awaits.
std::uint32_t CompressedBuckets::reduction_of(Token i) const {
  const std::vector<Instruction>& list = rank_.ranks.instructions;
  if (list[i].op == models::Opcode::reduce_gradient) return list[i].target;
  if (list[i].awaits != models::no_token) return list[list[i].awaits].target;
  const auto reduction = std::find_if(list.begin() + i, list.end(),
                                      [&](const Instruction& each) { return each.input == i; });
  ensure(reduction != list.end(), "a compressed bucket is not reduced");
  return reduction->target;
}

std::size_t CompressedBuckets::bucket_of(Token i) const {
  return rank_.layout.reduced(reduction_of(i)).first;
}

/// What a phase that compresses or decompresses works in, but for the bucket itself.
void CompressedBuckets::hold_parts(const models::Block& block, Forms& of, HeldMemory& memory) {
  for (const models::Operand& each : block.operands) {
    if (each.role == models::Role::gradient) continue;
    if (each.role == models::Role::input && of.in_place) {
      of.received = of.sent;
      continue;
    }
    const bool residual = each.role == models::Role::optimizer;
    const auto kind = residual ? models::BufferKind::optimizer : models::BufferKind::staging;
    std::byte* const data = memory.hold(kind, aligned(each.bytes().count()));
    if (residual) {
      of.residual = data;
    } else {
      (each.role == models::Role::output ? of.sent : of.received).push_back(data);
    }
  }
}

std::vector<View> CompressedBuckets::views_of(const models::Block& block,
                                              std::size_t bucket) const {
  const Forms& of = forms_.at(bucket);
  std::vector<View> views;
  std::size_t sent = 0, received = 0;
  for (const models::Operand& each : block.operands) {
    std::byte* at = of.residual;
    if (each.role == models::Role::gradient) {
      at = weights_.gradient(rank_.layout.buckets()[bucket].first);
    }
    if (each.role == models::Role::output) at = of.sent.at(sent++);
    if (each.role == models::Role::input) at = of.received.at(received++);
    views.push_back({at, each.dtype, each.shape});
  }
  return views;
}

void CompressedBuckets::run(Token i) {
  const std::uint32_t id = rank_.invocations(i).front().block;
  const models::Block& block = rank_.program.blocks[id];
  const std::vector<View> views = views_of(block, bucket_of(i));
  for (std::size_t op = 0; op < block.operations.size(); ++op) {
    const models::Operation& operation = block.operations[op];
    const std::size_t entry = rank_.recording.begin_either(i, operation.queue, id, op);
    run_on(rank_.device, operation, views);
    rank_.recording.end(entry, operation.queue);
  }
}

CollectiveCall CompressedBuckets::call_of(Token i) const {
  const models::JointCollective& joint = rank_.joint(i);
  const std::size_t bucket = bucket_of(i);
  const Forms& of = forms_.at(bucket);
  CollectiveCall call;
  call.kind = joint.kind;
  call.send = of.sent.at(joint.part);
  call.receive = of.received.at(joint.part);
  if (of.in_place) {
    call.count = rank_.layout.buckets()[bucket].count;
    call.element = Element::fp16;
  } else {
    call.count = joint.bytes.count() / rank_.program.mesh.degree(models::MeshAxis::data);
    call.element = Element::byte;
  }
  return call;
}

}  // namespace orrery::executor
