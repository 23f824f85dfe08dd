// Kernels whose threads share rows: norms, softmax, the loss, sums over rows. Sizes are no
// multiples of packs, groups or blocks; some rows are longer than what a group holds in registers.

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "executor/device/cuda/kernels/kernels.hpp"
#include "tests/executor/device/cuda/device_array.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::Norm;

/// Rows of x, as the norms' forward and backward take them.
struct Size {
  std::int64_t rows = 0, n = 0;
};

/// One element, a part of a pack, a warp's share, no multiple of a pack, several warps.
const Size sizes[] = {{3, 1}, {5, 7}, {9, 64}, {2, 333}, {35, 1200}};
/// Longer than 512 threads hold of fp64, and of fp32: forward four packs, backward three.
const Size long_sizes[] = {{2, 4099}, {3, 8320}};

void check_norm(Norm kind, DType dtype, const Size& size) {
  const Shape x{1, size.rows, size.n}, line{1, 1, size.n};
  Trial trial{OpKind::norm};
  trial.operation.mutable_norm() = kind;
  if (kind == Norm::rms_norm) trial.operation.mutable_offset() = 1;
  trial.read(dtype, x, normal(1)).read(dtype, line, normal(2));
  if (kind == Norm::layer_norm) trial.read(dtype, line, normal(3));
  trial.write(dtype, x).check();
}

TEST_CASE("Norms of rows of any length are the CPU's") {
  for_each_format([](DType dtype) {
    for (const Norm kind : {Norm::layer_norm, Norm::rms_norm}) {
      for (const Size& size : sizes) check_norm(kind, dtype, size);
    }
  });
  for (const Size& size : long_sizes) {
    check_norm(Norm::layer_norm, DType::fp64, size);
    check_norm(Norm::rms_norm, DType::fp32, size);
  }
}

void check_norm_backward(Norm kind, DType dtype, DType gradient, const Size& size) {
  const Shape x{1, size.rows, size.n}, line{1, 1, size.n};
  Trial trial{OpKind::norm_backward};
  trial.operation.mutable_norm() = kind;
  if (kind == Norm::rms_norm) trial.operation.mutable_offset() = 1;
  trial.read(dtype, x, normal(1)).read(dtype, x, normal(2)).read(dtype, line, normal(3));
  // A norm of the embedding has no residual.
  if (kind == Norm::layer_norm) trial.read(dtype, x, normal(4));
  trial.write(dtype, x).write(gradient, line, normal(5));
  if (kind == Norm::layer_norm) trial.write(gradient, line, normal(6));
  trial.check();
}

TEST_CASE("Gradients of norms are the CPU's, and those of weights are added to") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const Norm kind : {Norm::layer_norm, Norm::rms_norm}) {
      for (const Size& size : sizes) check_norm_backward(kind, dtype, gradient, size);
    }
  });
  for (const Size& size : long_sizes) {
    check_norm_backward(Norm::layer_norm, DType::fp64, DType::fp64, size);
    check_norm_backward(Norm::rms_norm, DType::fp32, DType::fp32, size);
  }
}

TEST_CASE("A frozen norm passes its gradient on and has none itself") {
  for_each_format([](DType dtype) {
    for (const Norm kind : {Norm::layer_norm, Norm::rms_norm}) {
      for (const Size& size : sizes) {
        const Shape x{1, size.rows, size.n};
        Trial trial{OpKind::norm_backward};
        trial.operation.mutable_norm() = kind;
        if (kind == Norm::rms_norm) trial.operation.mutable_offset() = 1;
        trial.read(dtype, x, normal(1)).read(dtype, x, normal(2));
        trial.read(dtype, {1, 1, size.n}, normal(3)).read(dtype, x, normal(4));
        trial.write(dtype, x).check();
      }
    }
  });
}

TEST_CASE("A group of threads that norms many rows backward sums over all of them") {
  // 67,584 threads in groups of 16 for 64 numbers in fp64 take 4,224 rows at once.
  check_norm_backward(Norm::layer_norm, DType::fp64, DType::fp64, {4300, 64});
}

/// 6 query and 2 key heads of 5 or 8 columns; 2 value heads pass.
Trial heads_trial(OpKind kind, std::int64_t dim) {
  Trial trial{kind};
  trial.operation.mutable_norm() = Norm::rms_norm;
  trial.operation.mutable_heads() = {6, 2, dim};
  return trial;
}

TEST_CASE("Norms of query and key heads are the CPU's, and values pass") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const std::int64_t dim : {5, 8}) {
      const Shape x{1, 7, 10 * dim}, weight{1, 2, dim};
      Trial forward = heads_trial(OpKind::norm, dim);
      forward.read(dtype, x, normal(1)).read(dtype, weight, normal(2)).write(dtype, x).check();
      Trial backward = heads_trial(OpKind::norm_backward, dim);
      backward.read(dtype, x, normal(1)).read(dtype, x, normal(2)).read(dtype, weight, normal(3));
      backward.write_over(0).write(gradient, weight, normal(4)).check();
    }
  });
}

TEST_CASE("A norm of a scaled row is the row's norm") {
  // Without epsilon, (a x - mean(a x)) / deviation(a x) = (x - mean(x)) / deviation(x) for a > 0.
  const auto normed = [](double scale) {
    Trial trial{OpKind::norm};
    trial.operation.mutable_epsilon() = 0;
    const Fill of = normal(1);
    const Shape x{1, 4, 100}, line{1, 1, 100};
    trial.read(DType::fp64, x, [&](std::int64_t i) { return scale * of(i); });
    trial.read(DType::fp64, line, constant(1)).write(DType::fp64, x);
    return trial.by_gpu().front();
  };
  const Numbers one = normed(1), eight = normed(8);
  for (std::size_t i = 0; i < one.size(); ++i) REQUIRE(eight[i] == Approx(one[i]).margin(1e-12));
}

Trial attention_trial(OpKind kind, std::int64_t seq, bool causal, std::int64_t window) {
  Trial trial{kind};
  trial.operation.mutable_attention() = {.batch = 2,
                                         .seq = seq,
                                         .heads = 3,
                                         .kv_heads = 3,
                                         .head_dim = 16,
                                         .causal = causal,
                                         .window = window};
  return trial;
}

void check_softmax(DType dtype, std::int64_t seq, bool causal, std::int64_t window) {
  const Shape square{6, seq, seq};
  const Fill score = normal(1);
  attention_trial(OpKind::softmax, seq, causal, window)
      .read(dtype, square, [&](std::int64_t i) { return 6 * score(i); })
      .write(dtype, square)
      .check();
  attention_trial(OpKind::softmax_backward, seq, causal, window)
      .read(dtype, square, normal(2))
      .read(dtype, square, [&](std::int64_t i) { return std::abs(score(i)) / 20; })
      .write(dtype, square)
      .check();
}

TEST_CASE("Softmax and its gradient are the CPU's under every mask") {
  for_each_format([](DType dtype) {
    for (const std::int64_t seq : {1, 9, 40}) {
      check_softmax(dtype, seq, true, 0);
      check_softmax(dtype, seq, true, 5);
      check_softmax(dtype, seq, false, 0);
      check_softmax(dtype, seq, false, 5);
    }
  });
}

TEST_CASE("Weights of a query sum to one, over the keys that it sees") {
  const std::int64_t seq = 37, window = 4;
  Trial trial = attention_trial(OpKind::softmax, seq, true, window);
  trial.read(DType::fp64, {6, seq, seq}, normal(3)).write(DType::fp64, {6, seq, seq});
  const Numbers weights = trial.by_gpu().front();
  for (std::int64_t row = 0; row < 6 * seq; ++row) {
    double sum = 0;
    for (std::int64_t key = 0; key < seq; ++key) {
      const double weight = weights[static_cast<std::size_t>(row * seq + key)];
      const std::int64_t query = row % seq;
      const bool seen = key <= query && key > query - window;
      REQUIRE((weight > 0) == seen);
      sum += weight;
    }
    REQUIRE(sum == Approx(1).epsilon(1e-12));
  }
}

/// A shard of 41 columns, the last three of them padding, of a vocabulary of 79.
Trial loss_trial(OpKind kind, std::int64_t columns) {
  Trial trial{kind};
  trial.operation.mutable_vocabulary() = 2 * columns - 3;
  trial.place.first_vocabulary = columns;
  trial.place.loss_scale = 1.0 / 64;
  return trial;
}

TEST_CASE("The loss over a shard of the vocabulary is the CPU's") {
  for_each_format([](DType dtype) {
    const DType state = state_beside(dtype);
    for (const std::int64_t columns : {5, 41, 1000}) {
      const Shape logits{1, 7, columns};
      loss_trial(OpKind::cross_entropy, columns)
          .read(dtype, logits, normal(1))
          .read(DType::int64, {1, 1, 7}, integers(2 * columns - 3))
          .write(state, logits)
          .write(state, {1, 7, 3})
          .check();
      const Fill of = normal(2);
      const auto positive = [&](std::int64_t i) { return 0.5 + std::abs(of(i)); };
      loss_trial(OpKind::cross_entropy_backward, columns)
          .read(state, logits, positive)
          .read(DType::int64, {1, 1, 7}, integers(2 * columns - 3))
          .read(state, {2, 7, 3}, positive)
          .write(dtype, logits)
          .check();
    }
  });
}

TEST_CASE("Rows without a label have neither loss nor gradient on both devices") {
  const Fill label = [](std::int64_t i) { return static_cast<double>(i % 3 == 0 ? -1 : i); };
  const auto positive = [](std::int64_t i) { return 0.5 + std::abs(normal(2)(i)); };
  for (const std::int64_t first : {0, 41}) {
    for_each_format([&](DType dtype) {
      const DType state = state_beside(dtype);
      Trial forward = loss_trial(OpKind::cross_entropy, 41);
      forward.place.first_vocabulary = first;
      forward.read(dtype, {1, 7, 41}, normal(1)).read(DType::int64, {1, 1, 7}, label);
      forward.write(state, {1, 7, 41}).write(state, {1, 7, 3}).check();
      Trial backward = loss_trial(OpKind::cross_entropy_backward, 41);
      backward.place.first_vocabulary = first;
      backward.read(state, {1, 7, 41}, positive).read(DType::int64, {1, 1, 7}, label);
      backward.read(state, {2, 7, 3}, positive).write(dtype, {1, 7, 41}).check();
    });
  }
}

TEST_CASE("A loss over rows longer than a block holds is the CPU's") {
  const Shape logits{1, 2, 17001};
  loss_trial(OpKind::cross_entropy, 17001)
      .read(DType::fp32, logits, normal(1))
      .read(DType::int64, {1, 1, 2}, integers(34000))
      .write(DType::fp32, logits)
      .write(DType::fp32, {1, 2, 3})
      .check();
}

TEST_CASE("A shard of nothing but padding has no loss and no gradient") {
  Trial trial{OpKind::cross_entropy};
  trial.operation.mutable_vocabulary() = 8;
  trial.place.first_vocabulary = 8;
  trial.read(DType::fp32, {1, 2, 8}, normal(1)).read(DType::int64, {1, 1, 2}, integers(8));
  trial.write(DType::fp32, {1, 2, 8}).write(DType::fp32, {1, 2, 3});
  const double nothing = -INFINITY;
  CHECK(trial.by_gpu() ==
        std::vector<Numbers>{Numbers(16), {nothing, 0, nothing, nothing, 0, nothing}});
}

TEST_CASE("The gradients of a row's logits sum to nothing") {
  // Softmax sums to 1 and the label takes 1 away.
  const Shape logits{1, 6, 35}, line{1, 1, 6};
  Trial forward{OpKind::cross_entropy}, backward{OpKind::cross_entropy_backward};
  forward.operation.mutable_vocabulary() = backward.operation.mutable_vocabulary() = 35;
  forward.read(DType::fp64, logits, normal(1)).read(DType::int64, line, integers(35));
  forward.write(DType::fp64, logits).write(DType::fp64, {1, 6, 3});
  const std::vector<Numbers> kept = forward.by_gpu();
  const auto of = [&](std::size_t which) {
    return [&kept, which](std::int64_t i) { return kept[which][static_cast<std::size_t>(i)]; };
  };
  backward.read(DType::fp64, logits, of(0)).read(DType::int64, line, integers(35));
  backward.read(DType::fp64, {1, 6, 3}, of(1)).write(DType::fp64, logits);
  const Numbers slopes = backward.by_gpu().front();
  for (auto row = slopes.begin(); row != slopes.end(); row += 35) {
    CHECK(std::accumulate(row, row + 35, 0.0) == Approx(0).margin(1e-14));
  }
}

TEST_CASE("Biases' gradients are sums over rows, and are added to") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const Size& size : {Size{1, 1}, Size{67, 13}, Size{300, 264}}) {
      Trial trial{OpKind::add_backward};
      trial.read(dtype, {1, size.rows, size.n}, normal(1));
      trial.write(gradient, {1, 1, size.n}, normal(2)).check();
    }
  });
}

TEST_CASE("Column sums of integers are exact") {
  // Column j of 200 rows holds i mod 5 + j: 400 + 200 j in all, on top of 1.
  std::vector<float> from;
  for (int i = 0; i < 200; ++i) {
    for (int j = 0; j < 6; ++j) from.push_back(static_cast<float>(i % 5 + j));
  }
  DeviceArray<float> rows{from}, sums{std::vector<float>(6, 1.0F)};
  const View of_rows{reinterpret_cast<std::byte*>(rows.data()), DType::fp32, {1, 200, 6}};
  const View of_sums{reinterpret_cast<std::byte*>(sums.data()), DType::fp32, {1, 1, 6}};
  const DeviceArray<std::byte> scratch{
      std::vector<std::byte>(static_cast<std::size_t>(column_sums_scratch(of_rows)))};
  column_sums(of_rows, of_sums, nullptr, scratch.data());
  finish_device();
  scratch.values();
  CHECK(sums.values() == std::vector<float>{401, 601, 801, 1001, 1201, 1401});
}

}  // namespace
}  // namespace orrery::executor::cuda
