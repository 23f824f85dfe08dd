// Tokens that are not all of a sequence in order, on both devices: documents that see themselves
// alone, ranks that share a sequence, heads whose values are not as wide as keys.

#include <catch2/catch.hpp>
#include <cmath>

#include "executor/device/cuda/kernels/kernels.hpp"
#include "executor/device/token_map.hpp"
#include "models/model/rotary.hpp"
#include "tests/executor/device/cuda/device_array.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::SequencePart;

/// Documents of 5, 3 and 4 tokens.
TokenMap documents() {
  TokenMap map;
  map.attended.emplace_back();
  for (const std::int64_t length : {5, 3, 4}) {
    const std::int64_t begin = map.sequence();
    for (std::int64_t i = 0; i < length; ++i) {
      map.attended[0].push_back(begin + i);
      map.positions.push_back(i);
      map.begins.push_back(begin);
      map.ends.push_back(begin + length);
    }
  }
  map.places = map.attended[0];
  return map;
}

/// The second of two ranks that share 12 tokens: 3 to 5 and 6 to 8; the other has both ends.
TokenMap shared() {
  TokenMap map;
  map.attended = {{0, 1, 2, 9, 10, 11}, {3, 4, 5, 6, 7, 8}};
  map.index = 1;
  map.places = map.positions = map.own();
  map.begins.assign(12, 0);
  map.ends.assign(12, 12);
  return map;
}

constexpr std::int64_t sequences = 2, heads = 4, kv_heads = 2;

/// An attention of `map`'s tokens, heads of 6 columns and values of `value`.
struct Attending {
  TokenMap map;
  SequencePart part{};
  std::int64_t value = 6, window = 0;
  bool causal = true, apart = false;

  std::int64_t rows() const { return sequences * static_cast<std::int64_t>(map.own().size()); }
  std::int64_t columns() const { return heads * 6 + kv_heads * (6 + value); }
  Shape keys() const {
    const bool all = part.keys == SequencePart::Keys::gathered;
    return {1, rows() * (all ? 2 : 1), kv_heads * (6 + value)};
  }
  Shape sums() const { return {sequences, heads, static_cast<std::int64_t>(map.own().size())}; }

  Trial trial(OpKind kind) const {
    Trial made{kind};
    made.operation.mutable_attention() = {.batch = sequences,
                                          .seq = static_cast<std::int64_t>(map.own().size()),
                                          .heads = heads,
                                          .kv_heads = kv_heads,
                                          .head_dim = 6,
                                          .causal = causal,
                                          .window = window,
                                          .value_dim = value,
                                          .score_factor = 1.25};
    made.operation.mutable_sequence() = part;
    made.place.tokens = &map;
    made.place.sequence = static_cast<std::int64_t>(map.places.size());
    return made;
  }

  void check(DType type) const {
    const DType state = state_beside(type);
    Trial forward = trial(OpKind::attention);
    forward.operation.dtype = type;
    forward.read(type, {1, rows(), columns()}, normal(1));
    if (apart) forward.read(type, keys(), normal(2));
    forward.write(type, {1, rows(), heads * value}, constant(0)).write(state, sums(), constant(0));
    forward.check();
    Trial backward = trial(OpKind::attention_backward);
    backward.operation.dtype = type;
    backward.read(type, {1, rows(), columns()}, normal(1));
    if (apart) backward.read(type, keys(), normal(2));
    backward.read(type, {1, rows(), heads * value}, normal(3));
    backward.read(state, sums(),
                  [](std::int64_t i) { return 2 + 0.1 * static_cast<double>(i % 7); });
    backward.read(type, {1, rows(), heads * value}, normal(4));
    backward.write(type, {1, rows(), columns()}, normal(5));
    const bool gathered = part.keys == SequencePart::Keys::gathered;
    if (gathered) backward.write(type, keys(), normal(6));
    backward.check();
  }
};

TEST_CASE("A GPU's attention of packed documents is the processor's") {
  for_each_format([](DType type) {
    Attending{.map = documents()}.check(type);
    Attending{.map = documents(), .window = 2}.check(type);
    Attending{.map = documents(), .causal = false}.check(type);
  });
}

TEST_CASE("A GPU's attention to keys of other ranks is the processor's") {
  using Keys = SequencePart::Keys;
  using Queries = SequencePart::Queries;
  for_each_format([](DType type) {
    Attending{.map = shared(), .part = {.keys = Keys::own}, .apart = true}.check(type);
    Attending{.map = shared(), .part = {.keys = Keys::passed, .ahead = 1}, .apart = true}.check(
        type);
    for (const Queries which : {Queries::early, Queries::late, Queries::all}) {
      const SequencePart part{.keys = Keys::gathered, .queries = which};
      Attending{.map = shared(), .part = part, .apart = true}.check(type);
      Attending{.map = shared(), .part = part, .window = 4, .apart = true}.check(type);
    }
  });
}

TEST_CASE("A GPU's attention whose values are narrower or wider than keys is the processor's") {
  TokenMap whole = documents();
  whole.begins.assign(12, 0);
  whole.ends.assign(12, 12);
  for_each_format([&](DType type) {
    for (const std::int64_t value : {4, 40}) {
      Attending{.map = whole, .value = value}.check(type);
    }
  });
}

// Of two halves of the same keys, each a softmax of its own.
TEST_CASE("What attentions to several ranks' keys make is merged as on the processor") {
  for_each_format([](DType type) {
    const Shape out{1, 10, heads * 6}, sums{sequences, heads, 5};
    Trial outputs{OpKind::add};
    outputs.operation.mutable_sequence().merges = true;
    outputs.operation.mutable_attention() = {.batch = sequences, .heads = heads, .head_dim = 6};
    outputs.read(type, out, normal(1)).read(type, out, normal(2));
    outputs.read(state_beside(type), sums, normal(3));
    outputs.read(state_beside(type), sums,
                 [](std::int64_t i) { return i % 3 == 0 ? -INFINITY : normal(4)(i); });
    outputs.write_over(0).write_over(2).check();
    Trial gradients{OpKind::add};
    gradients.operation.mutable_sequence().merges = true;
    gradients.read(type, {1, 10, 48}, normal(1)).read(type, {1, 10, 48}, normal(2));
    gradients.read(type, {1, 10, 24}, normal(3)).write_over(0).check();
  });
}

TEST_CASE("Positions and sights of documents are the same on both devices") {
  const TokenMap map = documents();
  for_each_format([&](DType type) {
    Trial turned{OpKind::rotary};
    turned.operation.mutable_heads() = {2, 1, 8};
    turned.operation.mutable_frequencies() = models::rotary_frequencies({}, 8);
    turned.place.tokens = &map;
    turned.place.sequence = 12;
    turned.read(type, {1, 24, 32}, normal(1)).write_over(0).check();
    Trial added{OpKind::add}, table{OpKind::add_backward};
    added.operation.mutable_by_position() = table.operation.mutable_by_position() = true;
    added.place = table.place = turned.place;
    added.read(type, {1, 24, 10}, normal(1)).read(type, {1, 9, 10}, normal(2));
    added.write(type, {1, 24, 10}).check();
    table.read(type, {1, 24, 10}, normal(3)).write(type, {1, 9, 10}, normal(4)).check();
    for (const OpKind kind : {OpKind::softmax, OpKind::softmax_backward}) {
      for (const bool causal : {true, false}) {
        Trial seen{kind};
        seen.operation.mutable_attention() = {
            .batch = 2, .seq = 12, .heads = 1, .kv_heads = 1, .head_dim = 4, .causal = causal};
        seen.place = turned.place;
        seen.read(type, {2, 12, 12}, normal(5));
        if (kind == OpKind::softmax_backward) seen.read(type, {2, 12, 12}, normal(6));
        seen.write(type, {2, 12, 12}).check();
      }
    }
  });
}

TEST_CASE("Heads of latent attention are joined and taken apart as on the processor") {
  constexpr std::int64_t rows = 14, dim = 10, rotary = 4, value = 7, latent = 9;
  for_each_format([](DType type) {
    Trial join{OpKind::cast};
    join.operation.mutable_heads() = {heads, heads, dim};
    join.operation.mutable_frequencies() = models::rotary_frequencies({}, rotary);
    join.operation.mutable_magnitude() = 1.5;
    join.place.sequence = 5;
    const std::int64_t made = dim - rotary + value, columns = heads * (2 * dim + value);
    Trial split = join;
    join.read(type, {1, rows, heads * dim}, normal(1))
        .read(type, {1, rows, heads * made}, normal(2));
    join.read(type, {1, rows, latent}, normal(3)).write(type, {1, rows, columns}).check();
    split.read(type, {1, rows, columns}, normal(4)).write(type, {1, rows, heads * dim});
    split.write(type, {1, rows, heads * made}).write(type, {1, rows, rotary}).check();
  });
}

TEST_CASE("A latent's norm copies the columns that follow it, forward and backward") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const Shape& latent :
         {Shape{1, 3, 1}, Shape{1, 9, 64}, Shape{1, 2, 333}, Shape{1, 35, 1200}}) {
      for (const std::int64_t after : {1, 8, 67}) {
        const Shape x{1, latent[1], latent[2] + after}, line{1, 1, latent[2]};
        Trial forward{OpKind::norm}, backward{OpKind::norm_backward};
        forward.operation.mutable_norm() = backward.operation.mutable_norm() =
            models::Norm::rms_norm;
        forward.read(dtype, x, normal(1)).read(dtype, line, normal(2)).write(dtype, x).check();
        backward.read(dtype, x, normal(1)).read(dtype, x, normal(2)).read(dtype, line, normal(3));
        backward.write(dtype, x).write(gradient, line, normal(4)).check();
      }
    }
  });
}

TEST_CASE("Columns that follow a product's are filled, and the product's own are left alone") {
  // Two rows of three columns and two more.
  DeviceArray<float> from{{1, 2, 3, 4}}, to{{10, 11, 12, 0, 0, 20, 21, 22, 0, 0}};
  put_last_columns({reinterpret_cast<std::byte*>(from.data()), DType::fp32, {1, 2, 2}},
                   {reinterpret_cast<std::byte*>(to.data()), DType::fp32, {1, 2, 5}}, nullptr);
  finish_device();
  CHECK(to.values() == std::vector<float>{10, 11, 12, 1, 2, 20, 21, 22, 3, 4});
}

}  // namespace
}  // namespace orrery::executor::cuda
