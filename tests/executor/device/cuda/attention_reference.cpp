#include "tests/executor/device/cuda/attention_reference.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "executor/device/cpu/cpu_device.hpp"
#include "executor/device/half.hpp"

namespace orrery::executor::cuda {

namespace {

using models::AttentionGemm;
using models::AttentionShape;
using models::DType;
using models::Operation;
using models::OpKind;

double rounded(double value, DType format) {
  const auto narrowed = [&](auto stored) {
    narrow(static_cast<float>(value), stored);
    return static_cast<double>(widened(stored));
  };
  switch (format) {
    case DType::bf16:
      return narrowed(Bf16{});
    case DType::fp16:
      return narrowed(Fp16{});
    case DType::fp32:
      return static_cast<double>(static_cast<float>(value));
    default:
      return value;
  }
}

/// The formula, head by head and query by query.
class Formula {
 public:
  Formula(const AttentionShape& shape, const Numbers& qkv, const Numbers& d_out)
      : shape_{shape}, qkv_{qkv}, d_out_{d_out} {
    results_.out.resize(d_out.size());
    results_.d_qkv.resize(qkv.size());
    for (std::int64_t b = 0; b < shape.batch; ++b) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        for (std::int64_t i = 0; i < shape.seq; ++i) one(b, h, i);
      }
    }
  }

  const AttentionResults& results() const { return results_; }

 private:
  std::size_t query(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at((b * shape_.seq + i) * columns_of(shape_) + h * shape_.head_dim);
  }
  std::size_t key(std::int64_t b, std::int64_t h, std::int64_t j) const {
    const std::int64_t kv = shape_.heads + h / (shape_.heads / shape_.kv_heads);
    return at((b * shape_.seq + j) * columns_of(shape_) + kv * shape_.head_dim);
  }
  std::size_t value(std::int64_t b, std::int64_t h, std::int64_t j) const {
    return key(b, h, j) + at(shape_.kv_heads * shape_.head_dim);
  }
  std::size_t context(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return at(((b * shape_.seq + i) * shape_.heads + h) * shape_.head_dim);
  }
  static std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }
  double dot(const Numbers& a, std::size_t i, const Numbers& b, std::size_t j) const {
    double sum = 0;
    for (std::size_t c = 0; c < at(shape_.head_dim); ++c) sum += a[i + c] * b[j + c];
    return sum;
  }
  void add(Numbers& to, std::size_t i, double weight, const Numbers& from, std::size_t j) const {
    for (std::size_t c = 0; c < at(shape_.head_dim); ++c) to[i + c] += weight * from[j + c];
  }

  void one(std::int64_t b, std::int64_t h, std::int64_t i) {
    const double scale = 1 / std::sqrt(static_cast<double>(shape_.head_dim));
    const std::int64_t window = shape_.window > 0 ? shape_.window : shape_.seq;
    const std::int64_t first = std::max<std::int64_t>(0, i - window + 1);
    const std::int64_t last = shape_.causal ? i + 1 : shape_.seq;
    Numbers weights;
    double sum = 0, product = 0;
    for (std::int64_t j = first; j < last; ++j) {
      weights.push_back(std::exp(scale * dot(qkv_, query(b, h, i), qkv_, key(b, h, j))));
      sum += weights.back();
    }
    results_.lse.push_back(std::log(sum));
    for (std::int64_t j = first; j < last; ++j) {
      weights[at(j - first)] /= sum;
      add(results_.out, context(b, h, i), weights[at(j - first)], qkv_, value(b, h, j));
      product += weights[at(j - first)] * dot(d_out_, context(b, h, i), qkv_, value(b, h, j));
    }
    for (std::int64_t j = first; j < last; ++j) {
      const double weight = weights[at(j - first)];
      const double d_weight = dot(d_out_, context(b, h, i), qkv_, value(b, h, j));
      const double d_score = scale * weight * (d_weight - product);
      add(results_.d_qkv, value(b, h, j), weight, d_out_, context(b, h, i));
      add(results_.d_qkv, query(b, h, i), d_score, qkv_, key(b, h, j));
      add(results_.d_qkv, key(b, h, j), d_score, qkv_, query(b, h, i));
    }
  }

  const AttentionShape shape_;
  const Numbers &qkv_, &d_out_;
  AttentionResults results_;
};

}  // namespace

std::int64_t columns_of(const AttentionShape& s) {
  return (s.heads + 2 * s.kv_heads) * s.head_dim;
}

Numbers numbers(std::int64_t count, DType format, unsigned seed) {
  std::mt19937 random{seed};
  std::uniform_real_distribution<double> spread{-1.7, 1.7};
  Numbers made(static_cast<std::size_t>(count));
  for (double& each : made) each = rounded(spread(random), format);
  return made;
}

AttentionResults attention_by_formula(const AttentionShape& shape, const Numbers& qkv,
                                      const Numbers& d_out) {
  return Formula{shape, qkv, d_out}.results();
}

Numbers unfused_gradients(const AttentionShape& s, const Numbers& qkv, const Numbers& d_out) {
  const std::int64_t rows = s.batch * s.seq, heads = s.batch * s.heads;
  struct Host {
    std::vector<float> values;
    std::array<std::int64_t, 3> shape;
    View view() { return {reinterpret_cast<std::byte*>(values.data()), DType::fp32, shape}; }
  };
  const auto host = [](std::array<std::int64_t, 3> shape, const Numbers& from) {
    std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
    std::copy(from.begin(), from.end(), values.begin());
    return Host{values, shape};
  };
  Host in = host({1, rows, columns_of(s)}, qkv), d_in = host(in.shape, {});
  Host d_context = host({1, rows, s.heads * s.head_dim}, d_out);
  Host raw = host({heads, s.seq, s.seq}, {}), weights = raw, d_weights = raw, d_scores = raw;
  CpuDevice cpu;
  const auto run = [&](OpKind kind, AttentionGemm product, std::vector<View> reads, View write) {
    Operation op;
    op.kind = kind;
    op.mutable_attention_gemm() = product;
    op.mutable_attention() = s;
    const bool wide =
        product == AttentionGemm::scores || product == AttentionGemm::weights_gradient;
    op.mutable_gemm() = {.m = s.seq,
                         .n = wide ? s.seq : s.head_dim,
                         .k = wide ? s.head_dim : s.seq,
                         .batch = heads,
                         .transpose_a = product == AttentionGemm::value_gradient ||
                                        product == AttentionGemm::key_gradient,
                         .transpose_b = wide};
    Kernel kernel;
    kernel.operation = &op;
    kernel.reads = reads;
    kernel.writes = {&write, 1};
    cpu.run(kernel);
  };
  const auto multiply = [&](AttentionGemm product, Host& a, Host& b, Host& c) {
    run(OpKind::batched_gemm, product, {a.view(), b.view()}, c.view());
  };
  multiply(AttentionGemm::scores, in, in, raw);
  run(OpKind::softmax, AttentionGemm::none, {raw.view()}, weights.view());
  multiply(AttentionGemm::weights_gradient, d_context, in, d_weights);
  multiply(AttentionGemm::value_gradient, weights, d_context, d_in);
  run(OpKind::softmax_backward, AttentionGemm::none, {d_weights.view(), weights.view()},
      d_scores.view());
  multiply(AttentionGemm::query_gradient, d_scores, in, d_in);
  multiply(AttentionGemm::key_gradient, d_scores, in, d_in);
  return {d_in.values.begin(), d_in.values.end()};
}

}  // namespace orrery::executor::cuda
