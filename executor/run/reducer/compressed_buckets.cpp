#include "executor/run/reducer/compressed_buckets.hpp"

#include <algorithm>

#include "executor/run/weights/random.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

using models::Instruction;
using models::Token;

CompressedBuckets::CompressedBuckets(const RankContext& rank, const Weights& weights,
                                     HeldMemory& memory)
    : rank_{rank}, weights_{weights} {
  std::int64_t most = 0;
  for (Token i = 0; i < rank_.ranks.instructions.size(); ++i) {
    if (rank_.instruction(i).op != models::Opcode::compress) continue;
    hold_parts(block_of(i), bucket_of(i), memory);
    for (const models::Operand& each : block_of(i).operands) {
      if (each.role == models::Role::temporary) most = std::max(most, each.bytes().count());
    }
  }
  if (most > 0) temporary_ = memory.hold(models::BufferKind::staging, aligned(most));
}

const models::Block& CompressedBuckets::block_of(Token i) const {
  return rank_.program.blocks[rank_.invocations(i).front().block];
}

/// The reduction that a compression feeds, or whose result a decompression reads.
std::uint32_t CompressedBuckets::reduction_of(Token i) const {
  const std::vector<Instruction>& list = rank_.ranks.instructions;
  if (list[i].op == models::Opcode::reduce_gradient) return list[i].target;
  if (list[i].awaits != models::no_token) return list[list[i].awaits].target;
  const auto reduction = std::find_if(list.begin() + i, list.end(),
                                      [&](const Instruction& each) { return each.input == i; });
  ensure(reduction != list.end(), "a compressed bucket is not reduced");
  return reduction->target;
}

/// Allocates the operands of a compression or decompression phase, except the bucket itself and
/// temporaries.
void CompressedBuckets::hold_parts(const models::Block& block, std::size_t bucket,
                                   HeldMemory& memory) {
  Forms& of = forms_[bucket];
  for (const models::Operand& each : block.operands) {
    if (each.role == models::Role::gradient || each.role == models::Role::temporary) continue;
    const auto [known, fresh] = of.held.try_emplace(each.name);
    if (fresh) known->second = hold(each, bucket, memory);
    std::byte* const data = known->second;
    const auto lies_in = [&](const std::vector<std::byte*>& list) {
      return std::find(list.begin(), list.end(), data) != list.end();
    };
    if (each.role == models::Role::output) of.sent.push_back(data);
    if (each.role == models::Role::input && !lies_in(of.received)) of.received.push_back(data);
  }
}

/// Allocates one operand. State is initialised once and carries over between steps; all other
/// operands are written anew in each step.
std::byte* CompressedBuckets::hold(const models::Operand& of, std::size_t bucket,
                                   HeldMemory& memory) {
  const bool state = of.role == models::Role::optimizer;
  const auto kind = state ? models::BufferKind::optimizer : models::BufferKind::staging;
  std::byte* const data = memory.hold(kind, aligned(of.bytes().count()));
  if (!state) return data;
  kept_.push_back({&of, bucket, data});
  begin(of, bucket, data);
  return data;
}

/// Sets state to its value before the first step.
void CompressedBuckets::begin(const models::Operand& of, std::size_t bucket, std::byte* to) const {
  if (of.initial.kind == models::Initial::Kind::normal) return draw(of, bucket, to);
  rank_.device.zero(to, of.bytes());
}

void CompressedBuckets::forget() {
  for (const CarriedState& each : kept_) begin(*each.of, each.bucket, each.data);
}

/// Draws normal initial values, the same on all replicas.
void CompressedBuckets::draw(const models::Operand& of, std::size_t bucket, std::byte* to) const {
  const RandomStream random{rank_.settings.seed, stream_number(of.name + std::to_string(bucket))};
  const auto write = [&](auto zero) {
    std::vector<decltype(zero)> numbers(static_cast<std::size_t>(of.elements()));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] = static_cast<decltype(zero)>(of.initial.deviation * random.normal(i));
    }
    rank_.device.finish();  // the zeroing by `hold` must not come after the write
    rank_.device.write(numbers.data(), to, of.bytes());
  };
  of.dtype == models::DType::fp64 ? write(double{}) : write(float{});
}

std::vector<View> CompressedBuckets::views_of(const models::Block& block,
                                              std::size_t bucket) const {
  const Forms& of = forms_.at(bucket);
  std::vector<View> views;
  for (const models::Operand& each : block.operands) {
    std::byte* at = temporary_;
    if (each.role == models::Role::gradient) {
      at = weights_.gradient(rank_.layout.buckets()[bucket].first);
    } else if (each.role != models::Role::temporary) {
      at = of.held.at(each.name);
    }
    views.push_back({at, each.dtype, each.shape});
  }
  return views;
}

void CompressedBuckets::run(Token i) {
  const std::uint32_t id = rank_.invocations(i).front().block;
  const models::Block& block = block_of(i);
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
  const Forms& of = forms_.at(bucket_of(i));
  CollectiveCall call;
  call.kind = joint.kind;
  call.send = of.sent.at(joint.part);
  call.receive = of.received.at(joint.part);
  if (joint.kind == models::Collective::all_reduce) {
    call.count = joint.bytes.count() * 8 / bits(joint.dtype);
    call.element = rank_.calls.element(joint.dtype);
  } else {
    call.count = joint.bytes.count() / rank_.program.mesh.degree(models::MeshAxis::data);
    call.element = Element::byte;
  }
  return call;
}

}  // namespace orrery::executor
