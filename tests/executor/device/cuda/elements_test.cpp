// Kernels in which every thread has some elements of its own: activations, sums, rotary positions,
// tables, the optimizer, what gradients go through on their way to other ranks.

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "executor/device/cuda/kernels/kernels.hpp"
#include "models/model/rotary.hpp"
#include "sim/errors.hpp"
#include "tests/executor/device/cuda/device_array.hpp"
#include "tests/executor/device/cuda/trial.hpp"

namespace orrery::executor::cuda {
namespace {

using models::Activation;

TEST_CASE("Activations and their gradients are the CPU's") {
  for_each_format([](DType dtype) {
    for (const Activation each : {Activation::gelu, Activation::silu, Activation::relu,
                                  Activation::gelu_erf, Activation::relu2}) {
      for (const std::int64_t n : {1, 24, 301}) {
        for (const std::int64_t gates : {1, 2}) {
          const Shape in{1, 5, gates * n}, out{1, 5, n};
          const Fill of = normal(1);
          const auto spread = [&](std::int64_t i) { return 4 * of(i); };
          Trial forward{OpKind::activation}, backward{OpKind::activation_backward};
          forward.operation.mutable_activation() = backward.operation.mutable_activation() = each;
          forward.read(dtype, in, spread).write(dtype, out).check();
          backward.read(dtype, out, normal(2)).read(dtype, in, spread).write(dtype, in).check();
        }
      }
    }
  });
}

TEST_CASE("Activations far from zero neither overflow nor vanish") {
  // gelu and silu: x for large x, 0 for large -x; gate and up of 1 between them keep it so.
  for (const Activation each : {Activation::gelu, Activation::silu}) {
    Trial trial{OpKind::activation};
    trial.operation.mutable_activation() = each;
    const auto ends = [](std::int64_t i) { return i % 2 == 0 ? 1e4 : -1e4; };
    trial.read(DType::fp32, {1, 1, 4}, ends).write(DType::fp32, {1, 1, 4});
    CHECK(trial.by_gpu().front() == Numbers{1e4, 0, 1e4, 0});
  }
}

TEST_CASE("Sums of two, with a bias or without, are the CPU's") {
  for_each_format([](DType dtype) {
    for (const std::int64_t n : {3, 40, 257}) {
      const Shape x{1, 6, n};
      Trial plain{OpKind::add}, biased{OpKind::add};
      plain.read(dtype, x, normal(1)).read(dtype, x, normal(2)).write(dtype, x).check();
      biased.read(dtype, x, normal(1)).read(dtype, x, normal(2)).read(dtype, {1, 1, n}, normal(3));
      biased.write(dtype, x).check();
    }
  });
}

TEST_CASE("Rows of positions are added, and their gradients, from any first row on") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const std::int64_t n : {3, 40}) {
      for (const std::int64_t rows : {4, 23}) {  // less than a sequence, and three of them
        const Shape x{1, rows, n}, table{1, 12, n};
        Trial forward{OpKind::add}, backward{OpKind::add_backward};
        forward.operation.mutable_by_position() = backward.operation.mutable_by_position() = true;
        forward.place.sequence = backward.place.sequence = 7;
        forward.place.first_row = backward.place.first_row = 5;
        forward.read(dtype, x, normal(1)).read(dtype, table, normal(2)).write(dtype, x).check();
        backward.read(dtype, x, normal(3)).write(gradient, table, normal(4)).check();
        forward.read(dtype, {1, 2, n}, normal(5)).check();  // segments: all are of the first
        backward.write(gradient, {1, 2, n}, normal(6)).check();
      }
    }
  });
}

TEST_CASE("A row is added to all rows") {
  DeviceArray<double> to{{1, 2, 3, 4, 5, 6}}, row{{10, 20, 30}};
  const View of_to{reinterpret_cast<std::byte*>(to.data()), DType::fp64, {1, 2, 3}};
  const View of_row{reinterpret_cast<std::byte*>(row.data()), DType::fp64, {1, 1, 3}};
  add_row(of_row, of_to, nullptr);
  finish_device();
  CHECK(to.values() == std::vector<double>{11, 22, 33, 14, 25, 36});
}

Trial rotary_trial(OpKind kind, DType dtype, std::int64_t dim, const Fill& fill) {
  Trial trial{kind};
  trial.operation.mutable_heads() = {9, 3, dim};
  trial.operation.mutable_frequencies() = models::rotary_frequencies({}, dim);
  trial.place.sequence = 6;
  trial.read(dtype, {1, 14, 15 * dim}, fill).write_over(0);
  return trial;
}

TEST_CASE("Queries and keys are transposed as on the CPU, there and back") {
  for_each_format([](DType dtype) {
    for (const std::int64_t dim : {2, 10, 32}) {
      rotary_trial(OpKind::rotary, dtype, dim, normal(1)).check();
      rotary_trial(OpKind::rotary_backward, dtype, dim, normal(1)).check();
    }
  });
}

TEST_CASE("Where a share of a head's columns turns, the others stay on both devices") {
  Trial trial{OpKind::rotary};
  trial.operation.mutable_heads() = {2, 1, 8};
  trial.operation.mutable_frequencies() =
      models::rotary_frequencies({.base = 500, .share = 0.5}, 8);
  trial.place.sequence = 3;
  trial.read(DType::fp64, {1, 3, 32}, normal(1)).write_over(0).check();
  const Numbers turned = trial.by_gpu().front();
  for (const std::size_t kept : {4U, 7U, 12U, 36U, 71U}) {
    CHECK(turned[kept] == normal(1)(static_cast<std::int64_t>(kept)));
  }
  CHECK(turned[32] != normal(1)(32));
}

TEST_CASE("Cosines and sines are multiplied by a magnitude on both devices") {
  for_each_format([](DType dtype) {
    Trial trial = rotary_trial(OpKind::rotary, dtype, 16, normal(1));
    trial.operation.mutable_magnitude() = 1.25;
    trial.check();
  });
}

TEST_CASE("Turned there and back, queries and keys are what they were") {
  const Numbers turned = rotary_trial(OpKind::rotary, DType::fp64, 16, normal(1)).by_gpu().front();
  const auto of = [&](std::int64_t i) { return turned[static_cast<std::size_t>(i)]; };
  const Numbers back = rotary_trial(OpKind::rotary_backward, DType::fp64, 16, of).by_gpu().front();
  for (std::size_t i = 0; i < back.size(); ++i) {
    REQUIRE(back[i] == Approx(normal(1)(static_cast<std::int64_t>(i))).margin(1e-14));
  }
}

TEST_CASE("Angles of far positions keep their digits in fp32") {
  // Position 100,000 of a pair (1, 0) with frequency 1: (cos, sin) of 100,000 radians.
  Trial trial{OpKind::rotary};
  trial.operation.mutable_heads() = {1, 1, 2};
  trial.operation.mutable_frequencies() = {1};
  trial.place.sequence = 100001;
  const std::int64_t last = 100000;
  trial.read(DType::fp32, {1, last + 1, 6}, [](std::int64_t i) { return i % 2 == 0 ? 1 : 0; });
  const Numbers turned = trial.write_over(0).by_gpu().front();
  CHECK(turned[last * 6] == Approx(std::cos(1e5)).margin(3e-7));
  CHECK(turned[last * 6 + 1] == Approx(std::sin(1e5)).margin(3e-7));
}

TEST_CASE("Rows of tokens are looked up, and their gradients added, over a shard") {
  for_each_pair([](DType dtype, DType gradient) {
    for (const std::int64_t n : {3, 40, 1032}) {
      const std::int64_t tokens = 45, held = 9;
      const Shape x{1, tokens, n}, table{1, held, n};
      Trial forward{OpKind::embedding}, backward{OpKind::embedding_backward};
      forward.place.first_vocabulary = backward.place.first_vocabulary = 4;
      if (n == 40) forward.operation.mutable_multiplier() = 3.5;
      if (n == 40) backward.operation.mutable_multiplier() = 3.5;
      forward.read(DType::int64, {1, 1, tokens}, integers(17)).read(dtype, table, normal(1));
      forward.write(dtype, x).check();
      backward.read(DType::int64, {1, 1, tokens}, integers(17)).read(dtype, x, normal(2));
      backward.write(gradient, table, normal(3)).check();
    }
  });
}

TEST_CASE("A token that is everywhere gets every row's gradient") {
  // 70 rows of i in 3 columns: 70 * 69 / 2 on top of 1.
  Trial trial{OpKind::embedding_backward};
  trial.read(DType::int64, {1, 1, 70}, constant(2));
  trial.read(DType::fp32, {1, 70, 3}, [](std::int64_t i) { return i / 3; });
  trial.write(DType::fp32, {1, 4, 3}, constant(1));
  CHECK(trial.by_gpu().front() == Numbers{1, 1, 1, 1, 1, 1, 2416, 2416, 2416, 1, 1, 1});
}

TEST_CASE("Squares are added to a sum") {
  for_each_format([](DType dtype) {
    for (const std::int64_t n : {1, 1000, 20011}) {
      for (const std::int64_t askew : {0, 1}) {
        Trial trial{OpKind::squared_norm};
        trial.read(dtype, {1, 1, n}, normal(1)).askew(askew);
        trial.write(state_beside(dtype), {1, 1, 1}, constant(3)).check();
      }
    }
  });
}

/// Masters and moments next to gradients, with a working copy where parameters are narrower.
void check_adam(DType storage, DType gradient, std::int64_t askew) {
  const Shape line{1, 1, 1003};
  const DType state = state_beside(storage);
  const Fill of = normal(4);
  Trial trial{OpKind::adam};
  trial.adam.step = 3;
  trial.adam.gradient_scale = 0.5;
  trial.read(gradient, line, normal(1)).read(state, line, normal(2)).read(state, line, normal(3));
  trial.read(state, line, [&](std::int64_t i) { return of(i) * of(i); });
  trial.write_over(1).write_over(2).write_over(3).write_over(0);
  if (storage != state) trial.write(storage, line);
  trial.askew(askew).check();
}

TEST_CASE("A step of AdamW is the CPU's, wherever its ranges begin") {
  for_each_pair([](DType storage, DType gradient) {
    check_adam(storage, gradient, 0);
    check_adam(storage, gradient, 1);
  });
}

TEST_CASE("A step of AdamW on moments in bf16 is the CPU's") {
  for_each_pair([](DType storage, DType gradient) {
    const DType state = state_beside(storage);
    const Shape line{1, 1, 1003};
    const Fill of = normal(4);
    Trial trial{OpKind::adam};
    trial.adam.step = 3;
    trial.read(gradient, line, normal(1)).read(state, line, normal(2));
    trial.read(DType::bf16, line, normal(3));
    trial.read(DType::bf16, line, [&](std::int64_t i) { return of(i) * of(i); });
    trial.write_over(1).write_over(2).write_over(3).write_over(0);
    if (storage != state) trial.write(storage, line);
    trial.check();
  });
}

// Four blocks, the last of 235 numbers; codes are equal, scales and masters to rounding.
TEST_CASE("A step of AdamW on moments in 8 bits is the CPU's, code by code") {
  for_each_pair([](DType storage, DType gradient) {
    const DType state = state_beside(storage);
    const Shape line{1, 1, 1003}, blocks{1, 1, 4};
    Trial trial{OpKind::adam};
    trial.adam.step = 3;
    trial.adam.gradient_scale = 0.5;
    trial.read(gradient, line, normal(1)).read(state, line, normal(2));
    trial.read(DType::uint8, line, integers(256)).read(DType::uint8, line, integers(255));
    trial.read(DType::fp32, blocks, constant(0.5)).read(DType::fp32, blocks, constant(0.25));
    trial.write_over(1).write_over(2).write_over(3).write_over(0);
    if (storage != state) trial.write(storage, line);
    trial.write_over(4).write_over(5).check();
  });
}

TEST_CASE("The first step of AdamW moves every weight by the rate, against its gradient") {
  // Corrected moments of one step are g and g g, so m / sqrt(v) is the sign of g; epsilon 0.
  Trial trial{OpKind::adam};
  trial.adam = {.learning_rate = 0.125, .epsilon = 0, .weight_decay = 0};
  const auto either = [](std::int64_t i) { return i % 2 == 0 ? 3 : -0.5; };
  trial.read(DType::fp64, {1, 1, 5}, either).read(DType::fp64, {1, 1, 5}, constant(1));
  trial.read(DType::fp64, {1, 1, 5}, constant(0)).read(DType::fp64, {1, 1, 5}, constant(0));
  trial.write_over(1).write_over(2).write_over(3).write_over(0);
  const std::vector<Numbers> after = trial.by_gpu();
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(after[0][i] == Approx(i % 2 == 0 ? 0.875 : 1.125).epsilon(1e-12));
    CHECK(after[3][i] == 0);
  }
}

TEST_CASE("Gradients accumulate as on the CPU") {
  for_each_pair([](DType fresh, DType gradient) {
    for (const std::int64_t askew : {0, 3}) {
      Trial trial{OpKind::accumulate};
      trial.read(fresh, {1, 7, 43}, normal(1)).read(gradient, {1, 7, 43}, normal(2));
      trial.write_over(1).askew(askew).check();
    }
  });
}

TEST_CASE("Numbers change their format as on the CPU") {
  for_each_format([](DType from) {
    for_each_format([&](DType to) {
      for (const std::int64_t askew : {0, 1}) {
        Trial trial{OpKind::cast};
        trial.read(from, {1, 1, 77}, normal(1)).write(to, {1, 1, 77}).askew(askew).check();
      }
    });
  });
}

TEST_CASE("The largest gradients are the CPU's, of equals the earliest") {
  for_each_pair([](DType storage, DType gradient) {
    const DType state = state_beside(storage);
    for (const std::int64_t n : {1, 300, 5000}) {
      for (const std::int64_t k : {std::int64_t{1}, (n + 9) / 10, n}) {
        // Integers of both signs have many equals.
        const Fill of = integers(41);
        const auto signs = [&](std::int64_t i) { return of(i) - 20; };
        Trial trial{OpKind::top_k};
        trial.read(gradient, {1, 1, n}, signs).read(state, {1, 1, n}, constant(0.25));
        trial.write(gradient, {1, 1, k}).write(DType::int32, {1, 1, k}).write_over(1).check();
      }
    }
  });
}

TEST_CASE("What is taken and what is left are the gradient and what was left before") {
  const std::int64_t n = 3000, k = 200;
  Trial trial{OpKind::top_k};
  trial.read(DType::fp32, {1, 1, n}, normal(1)).read(DType::fp32, {1, 1, n}, constant(0));
  trial.write(DType::fp32, {1, 1, k}).write(DType::int32, {1, 1, k}).write_over(1);
  const std::vector<Numbers> found = trial.by_gpu();
  Numbers sum = found[2];
  double smallest = 100, largest_left = 0;
  for (std::size_t i = 0; i < k; ++i) {
    sum[static_cast<std::size_t>(found[1][i])] += found[0][i];
    smallest = std::min(smallest, std::abs(found[0][i]));
  }
  for (std::size_t i = 0; i < n; ++i) {
    largest_left = std::max(largest_left, std::abs(found[2][i]));
    REQUIRE(sum[i] == static_cast<float>(normal(1)(static_cast<std::int64_t>(i))));
  }
  CHECK(largest_left <= smallest);
}

TEST_CASE("NaN and infinity are equally large, and the earlier of them are taken") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto values = [&](std::int64_t i) {
    return i == 5 || i == 9 ? nan : i == 2 ? -infinity : 1.0;
  };
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    Trial trial{OpKind::top_k};
    trial.read(dtype, {1, 1, 20}, values).read(dtype, {1, 1, 20}, constant(0));
    trial.write(dtype, {1, 1, 2}).write(DType::int32, {1, 1, 2}).write_over(1);
    CHECK(trial.by_gpu()[1] == Numbers{2, 5});
  }
}

TEST_CASE("Values of all ranks are added at their places, rank by rank") {
  for_each_format([](DType dtype) {
    // Places of one rank are distinct; those of the next begin further on and meet them.
    Trial trial{OpKind::scatter_add};
    trial.read(dtype, {1, 3, 50}, normal(1));
    trial.read(DType::int32, {1, 3, 50}, [](std::int64_t i) { return i % 50 * 3 + i / 50 * 6; });
    // 16 bits are rounded after each rank, the CPU's once.
    trial.write(dtype, {1, 1, 200}).check(bits(dtype) == 16 ? 0x1p-6 : 0);
  });
}

TEST_CASE("A basis is the CPU's, where columns depend on others, too") {
  const Fill any = normal(1);
  // The third column is twice the first, the fifth is zero.
  const auto dependent = [&](std::int64_t i) {
    return i % 5 == 2 ? 2 * any(i - 2) : i % 5 == 4 ? 0 : any(i);
  };
  for (const DType dtype : {DType::fp64, DType::fp32}) {
    for (const std::int64_t rows : {5, 37, 700}) {
      for (const Fill& fill : {any, Fill{dependent}}) {
        Trial trial{OpKind::orthogonalise};
        trial.read(dtype, {1, rows, 5}, fill)
            .write_over(0)
            .check(dtype == DType::fp64 ? 1e-13 : 1e-5);
      }
    }
  }
}

TEST_CASE("What the kernels cannot do they say") {
  models::Operation op;
  op.kind = OpKind::norm;
  CHECK(kernel_refusal(op).empty());
  op.dtype = DType::fp8;
  CHECK(kernel_refusal(op) ==
        "the GPU kernels support fp8 only for GEMM operands, and do not support fp4");
  op.kind = OpKind::quantise;
  CHECK(kernel_refusal(op).empty());
  op.dtype = DType::bf16;
  op.kind = OpKind::add;
  op.reads = {0, 1};
  op.writes = {2, 3};  // a mask
  CHECK(kernel_refusal(op) == "the GPU kernels do not support dropout");
  op.kind = OpKind::add_backward;
  CHECK(kernel_refusal(op) == "the GPU kernels do not support dropout");
}

TEST_CASE("Parts of newer models that the kernels lack are refused by name") {
  const auto refusal = [](OpKind kind, auto change) {
    models::Operation op;
    op.kind = kind;
    change(op);
    return kernel_refusal(op);
  };
  using models::Operation;
  CHECK(refusal(OpKind::activation, [](Operation&) {}).empty());
  CHECK(refusal(OpKind::activation, [](Operation& op) { op.mutable_clamp() = 7; }) ==
        "the GPU kernels do not support clamped activations");
  CHECK(refusal(OpKind::scan, [](Operation& op) { op.mutable_scan().chunks = 1; }) ==
        "the GPU kernels do not support recurrences over a sequence");
  CHECK(refusal(OpKind::softmax, [](Operation& op) { op.mutable_attention().sinks = true; }) ==
        "the GPU kernels do not support attention sinks");
  CHECK(refusal(OpKind::softmax, [](Operation& op) { op.mutable_attention().chunk = 4; }) ==
        "the GPU kernels do not support attention within chunks");
  CHECK(refusal(OpKind::add, [](Operation& op) { op.mutable_gates_row() = true; }) ==
        "the GPU kernels do not support gates of attention's output and of shared experts");
}

TEST_CASE("What is no kernel of the GPU's own is our mistake") {
  Trial product{OpKind::gemm};
  CHECK_THROWS_WITH(product.by_gpu(), "an operation that is not one of the GPU's kernels");
  Trial bytes{OpKind::activation};
  bytes.read(DType::int32, {1, 1, 4}, constant(1)).write(DType::int32, {1, 1, 4});
  CHECK_THROWS_WITH(bytes.by_gpu(), "a GPU kernel was given a format that it refuses");
  Trial wide{OpKind::accumulate};
  wide.read(DType::fp32, {1, 1, 4}, constant(1)).read(DType::fp64, {1, 1, 4}, constant(1));
  CHECK_THROWS_WITH(wide.write_over(1).by_gpu(),
                    "a GPU kernel was given two formats that do not go together");
  Trial head{OpKind::rotary};
  head.operation.mutable_heads() = {1, 1, 258};
  head.operation.mutable_frequencies() = models::rotary_frequencies({}, 258);
  head.read(DType::fp32, {1, 1, 3 * 258}, constant(1)).write_over(0);
  CHECK_THROWS_WITH(head.by_gpu(), "rotary positions of heads wider than 256");
}

}  // namespace
}  // namespace orrery::executor::cuda
