#include "executor/run/weights/moments.hpp"

#include <algorithm>

#include "executor/device/eight_bits.hpp"
#include "executor/device/formats.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::DType;

/// The format of the moments in the Adam operation's operands. Ring arithmetic rounds nothing.
DType format_of(const RankContext& rank) {
  if (rank.settings.arithmetic == Arithmetic::ring) return rank.program.formats.state;
  for (const models::Block& block : rank.program.blocks) {
    for (const models::Operation& op : block.operations) {
      if (op.kind == models::OpKind::adam) return block.operands[op.reads[2]].dtype;
    }
  }
  throw ContractError{"a program without an update"};
}

std::size_t index_of(StateKind kind) {
  ensure(kind == StateKind::first_moment || kind == StateKind::second_moment, "no moment");
  return kind == StateKind::first_moment ? 0 : 1;
}

EightBit codes_of(StateKind kind) {
  return kind == StateKind::first_moment ? EightBit::either_sign : EightBit::positive;
}

}  // namespace

OptimizerMoments::OptimizerMoments(const RankContext& rank)
    : rank_{rank}, state_{rank.program.formats.state}, format_{format_of(rank)} {
  std::int64_t blocks = 0;
  for (const Bucket& bucket : rank.layout.buckets()) {
    first_block_.push_back(blocks);
    blocks += (bucket.piece + eight_bit_block - 1) / eight_bit_block;
  }
  first_block_.push_back(blocks);
}

std::int64_t OptimizerMoments::bytes() const {
  const std::int64_t scales =
      in_blocks() ? 64 + 2 * first_block_.back() * width_of(DType::fp32) : 0;
  return 2 * all() * width_of(format_) + scales;
}

View OptimizerMoments::numbers(StateKind kind, std::int64_t local, std::int64_t count) const {
  const std::int64_t before = static_cast<std::int64_t>(index_of(kind)) * all() + local;
  return row_of(memory_ + before * width_of(format_), format_, count);
}

std::byte* OptimizerMoments::scale_memory(StateKind kind) const {
  const std::int64_t before = static_cast<std::int64_t>(index_of(kind)) * first_block_.back();
  return memory_ + aligned(2 * all()) + before * width_of(DType::fp32);
}

View OptimizerMoments::scales(StateKind kind, std::int64_t local) const {
  const std::vector<Bucket>& buckets = rank_.layout.buckets();
  const auto found = std::find_if(buckets.begin(), buckets.end(), [&](const Bucket& each) {
    return each.owned == local && each.piece > 0;
  });
  ensure(found != buckets.end(), "no bucket's moments begin there");
  const auto bucket = static_cast<std::size_t>(found - buckets.begin());
  return row_of(scale_memory(kind) + first_block_[bucket] * width_of(DType::fp32), DType::fp32,
                first_block_[bucket + 1] - first_block_[bucket]);
}

/// Calls visit(first element, elements) for each block of 8-bit moments.
template <class Visit>
void OptimizerMoments::for_each_block(Visit visit) const {
  for (const Bucket& bucket : rank_.layout.buckets()) {
    for (std::int64_t i = 0; i < bucket.piece; i += eight_bit_block) {
      visit(bucket.owned + i, std::min(eight_bit_block, bucket.piece - i));
    }
  }
}

/// All elements of one moment, decoded from 8 bits into host memory.
std::vector<double> OptimizerMoments::widened(StateKind kind) const {
  std::vector<double> wide(static_cast<std::size_t>(all()));
  std::vector<std::uint8_t> codes(wide.size());
  rank_.device.read(numbers(kind, 0, all()).data, codes.data(), Bytes{all()});
  std::vector<float> scales(static_cast<std::size_t>(first_block_.back()));
  rank_.device.read(scale_memory(kind), scales.data(), Bytes{4 * first_block_.back()});
  std::size_t block = 0;
  for_each_block([&](std::int64_t at, std::int64_t count) {
    from_eight_bits(codes_of(kind), codes.data() + at, scales[block++], count, wide.data() + at);
  });
  return wide;
}

template <class T>
void OptimizerMoments::read_as(StateKind kind, std::int64_t local, std::int64_t count,
                               T* to) const {
  if (in_blocks()) {
    const std::vector<double> wide = widened(kind);
    std::copy_n(wide.begin() + local, count, to);
    return;
  }
  std::vector<Bf16> narrow(static_cast<std::size_t>(count));
  rank_.device.read(numbers(kind, local, count).data, narrow.data(), Bytes{2 * count});
  convert(narrow.data(), count, to);
}

void OptimizerMoments::read(StateKind kind, std::int64_t local, std::int64_t count,
                            void* to) const {
  if (format_ == state_) {
    const View from = numbers(kind, local, count);
    return rank_.device.read(from.data, to, Bytes{count * width_of(format_)});
  }
  width_of(state_) == 8 ? read_as(kind, local, count, static_cast<double*>(to))
                        : read_as(kind, local, count, static_cast<float*>(to));
}

void OptimizerMoments::load(StateKind kind, std::int64_t local, std::int64_t count,
                            const void* from) {
  if (format_ == state_) {
    return rank_.device.write(from, numbers(kind, local, count).data,
                              Bytes{count * width_of(format_)});
  }
  std::vector<double>& wide = loaded_[index_of(kind)];
  if (wide.empty()) {
    wide.resize(static_cast<std::size_t>(all()));
    read_as(kind, 0, all(), wide.data());
  }
  const auto copy = [&](const auto* numbers) { std::copy_n(numbers, count, wide.begin() + local); };
  width_of(state_) == 8 ? copy(static_cast<const double*>(from))
                        : copy(static_cast<const float*>(from));
}

void OptimizerMoments::finish_loading() {
  for (const StateKind kind : {StateKind::first_moment, StateKind::second_moment}) {
    std::vector<double> wide = std::move(loaded_[index_of(kind)]);
    loaded_[index_of(kind)].clear();
    if (wide.empty()) continue;
    const std::byte* const to = numbers(kind, 0, all()).data;
    if (!in_blocks()) {
      std::vector<Bf16> narrowed(wide.size());
      convert(wide.data(), all(), narrowed.data());
      rank_.device.write(narrowed.data(), const_cast<std::byte*>(to), Bytes{2 * all()});
      continue;
    }
    std::vector<std::uint8_t> codes(wide.size());
    std::vector<float> scales;
    for_each_block([&](std::int64_t at, std::int64_t count) {
      scales.push_back(to_eight_bits(codes_of(kind), wide.data() + at, count, codes.data() + at));
    });
    rank_.device.write(codes.data(), const_cast<std::byte*>(to), Bytes{all()});
    rank_.device.write(scales.data(), scale_memory(kind), Bytes{4 * std::ssize(scales)});
  }
}

}  // namespace orrery::executor
