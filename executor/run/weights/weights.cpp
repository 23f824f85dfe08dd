#include "executor/run/weights/weights.hpp"

#include <algorithm>
#include <array>

#include "executor/device/formats.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::BufferKind;

/// Elements per cast kernel, which bounds the widened copies that the CPU device makes.
constexpr std::int64_t narrowed = std::int64_t{1} << 20;

}  // namespace

Weights::Weights(const RankContext& rank, HeldMemory& memory)
    : rank_{rank}, sharding_{rank.program.sharding}, moments_{rank} {
  const Layout& layout = rank_.layout;
  const auto held = [&](bool sharded) { return sharded ? layout.owned() : layout.elements(); };
  const std::int64_t weights = held(sharding_.parameters) * width_of(formats().storage);
  parameters_ = sharding_.parameters_on_host ? memory.hold_on_host(weights)
                                             : memory.hold(BufferKind::parameter, weights);
  if (layout.frozen_elements() > 0) {
    frozen_ =
        memory.hold(BufferKind::parameter, layout.frozen_elements() * width_of(formats().storage));
  }
  gradient_bytes_ = held(sharding_.gradients) * width_of(formats().gradient);
  gradients_ = memory.hold(BufferKind::gradient, gradient_bytes_);
  hold_state(memory);
  gathered_.assign(layout.buckets().size(), nullptr);
  if (sharding_.gradients) hold_buckets(memory);
  accumulate_.kind = models::OpKind::accumulate;
  accumulate_.dtype = formats().gradient;
  narrow_.kind = models::OpKind::cast;
  narrow_.name = "working copy";
  narrow_.dtype = formats().storage;
}

/// Allocates master weights and moments; where the host updates, also its memory for gradients and
/// for updated working copies.
void Weights::hold_state(HeldMemory& memory) {
  const std::int64_t owned = rank_.layout.owned();
  const std::int64_t masters = separate_master() ? owned * width_of(formats().master) : 0;
  const std::int64_t bytes = masters + moments_.bytes();
  masters_ = sharding_.optimizer_on_host ? memory.hold_on_host(bytes)
                                         : memory.hold(BufferKind::optimizer, bytes);
  moments_.place(masters_ + masters);
  if (!sharding_.optimizer_on_host) return;
  arrived_ = memory.hold_on_host(owned * width_of(formats().gradient));
  leaving_ = memory.hold_on_host(owned * width_of(formats().storage));
}

/// Allocates the buckets that backward fills and reductions empty, with room for the padding of the
/// last owner's piece.
void Weights::hold_buckets(HeldMemory& memory) {
  std::int64_t bytes = 0;
  for (const models::PersistentBuffer& each : rank_.ranks.persistent) {
    if (!each.bucket) continue;
    bucket_offsets_.push_back(bytes);
    bytes +=
        aligned(each.bytes.count() + rank_.program.most_shards() * width_of(formats().gradient));
  }
  buckets_ = memory.hold(BufferKind::gradient, bytes);
  filled_.assign(rank_.layout.buckets().size(), nullptr);
  // Bind each bucket once now: a tied head adds to the embedding's before its own turn comes.
  const std::vector<models::Instruction>& list = rank_.ranks.instructions;
  for (auto each = list.rbegin(); each != list.rend(); ++each) {
    if (each->op == models::Opcode::reduce_gradient) bind_filled(each->target);
  }
}

std::byte* Weights::in_bucket(bool sharded, const std::vector<std::byte*>& buckets,
                              std::byte* whole, models::DType type, std::int64_t element) const {
  if (!sharded) return whole + element * width_of(type);
  const std::size_t at = rank_.layout.bucket_at(element);
  const Bucket& bucket = rank_.layout.buckets()[at];
  // What only one rank holds is neither gathered nor reduced.
  std::byte* const begin =
      buckets[at] != nullptr ? buckets[at] : whole + bucket.owned * width_of(type);
  return begin + (element - bucket.first) * width_of(type);
}

std::byte* Weights::owned_gradient(std::int64_t element) const {
  const std::int64_t width = width_of(formats().gradient);
  if (!sharding_.gradients) return gradients_ + element * width;
  const Bucket& bucket = rank_.layout.buckets()[rank_.layout.bucket_at(element)];
  return gradients_ + (bucket.owned + element - rank_.layout.piece_of(bucket)) * width;
}

std::byte* Weights::owned(std::byte* buffer, bool sharded, std::int64_t local,
                          std::int64_t width) const {
  if (!rank_.layout.sharded() || sharded) return buffer + local * width;
  for (const Bucket& bucket : rank_.layout.buckets()) {
    if (local < bucket.owned || local >= bucket.owned + bucket.piece) continue;
    return buffer + (rank_.layout.piece_of(bucket) + local - bucket.owned) * width;
  }
  throw ContractError{"state is asked for that this rank does not own"};
}

std::byte* Weights::state(StateKind kind, std::int64_t local) const {
  if (kind == StateKind::gradient) {
    return owned(gradients_, sharding_.gradients, local, width_of_state(kind));
  }
  ensure(kind == StateKind::parameter, "moments have a place of their own");
  return separate_master() ? masters_ + local * width_of(formats().master) : working(local);
}

void Weights::read_state(StateKind kind, std::int64_t local, std::int64_t count, void* to) const {
  const bool moment = kind == StateKind::first_moment || kind == StateKind::second_moment;
  if (moment) return moments_.read(kind, local, count, to);
  if (kind == StateKind::parameter && formats().master != formats().state) {
    return with_format(formats().master, [&]<class T>(Type<T>) {
      std::vector<T> stored(static_cast<std::size_t>(count));
      rank_.device.read(state(kind, local), stored.data(), Bytes{count * std::int64_t{sizeof(T)}});
      convert(stored.data(), count, static_cast<float*>(to));
    });
  }
  rank_.device.read(state(kind, local), to, Bytes{count * width_of_state(kind)});
}

void Weights::read_frozen(std::int64_t local, std::span<double> to) const {
  with_format(formats().storage, [&]<class T>(Type<T>) {
    std::vector<T> stored(to.size());
    rank_.device.read(frozen(local), stored.data(),
                      Bytes{std::ssize(stored) * width_of(formats().storage)});
    convert(stored.data(), std::ssize(stored), to.data());
  });
}

void Weights::load_state(StateKind kind, std::int64_t local, std::int64_t count, const void* from) {
  const bool moment = kind == StateKind::first_moment || kind == StateKind::second_moment;
  if (moment) return moments_.load(kind, local, count, from);
  if (kind == StateKind::parameter) return write_masters(from, state(kind, local), count);
  rank_.device.write(from, state(kind, local), Bytes{count * width_of_state(kind)});
}

void Weights::write_masters(const void* from, std::byte* to, std::int64_t count) const {
  if (formats().master == formats().state) {
    return rank_.device.write(from, to, Bytes{count * width_of(formats().state)});
  }
  with_format(formats().master, [&]<class T>(Type<T>) {
    std::vector<T> stored(static_cast<std::size_t>(count));
    convert(static_cast<const float*>(from), count, stored.data());
    rank_.device.write(stored.data(), to, Bytes{count * std::int64_t{sizeof(T)}});
  });
}

void Weights::bind_filled(std::uint32_t collective) {
  const std::size_t buffer = rank_.program.collectives[collective].buffer;
  filled_[rank_.layout.reduced(collective).first] = buckets_ + bucket_offsets_[buffer];
}

void Weights::add_to_sums(std::uint32_t collective, std::byte* filled) {
  const models::DType type = formats().gradient;
  const Bucket& bucket = rank_.layout.buckets()[rank_.layout.reduced(collective).first];
  const std::int64_t piece = (rank_.layout.piece_of(bucket) - bucket.first) * width_of(type);
  const View sum = row_of(gradients_ + bucket.owned * width_of(type), type, bucket.piece);
  const std::array<View, 2> reads{row_of(filled + piece, type, bucket.piece), sum};
  run_on(rank_.device, accumulate_, reads, {&sum, 1});
  rank_.device.zero(filled, Bytes{bucket.padded * width_of(type)});
}

void Weights::follow_masters() {
  if (!separate_master()) return;
  for (const Bucket& bucket : rank_.layout.buckets()) {
    for (std::int64_t i = 0; i < bucket.piece; i += narrowed) {
      const std::int64_t local = bucket.owned + i, count = std::min(narrowed, bucket.piece - i);
      const View wide = row_of(state(StateKind::parameter, local), formats().master, count);
      const View narrow = row_of(working(local), formats().storage, count);
      run_on(rank_.device, narrow_, {&wide, 1}, {&narrow, 1});
    }
  }
}

}  // namespace orrery::executor
