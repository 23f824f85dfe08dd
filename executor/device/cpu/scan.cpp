// Recurrences over a sequence, token by token: Mamba-2 and the gated delta rule, each with the
// causal convolution before it and the gated norm after it. A reference: chunks are only where
// backward begins to compute states again. The order of columns is that of
// models/operations/parts/scan.cpp.
//
//   convolution  c_t = silu(sum_k w_k u_(t - taps + 1 + k) [+ bias]), column by column
//   Mamba-2      s = max(softplus(step + bias), least);  H_t = exp(-s e^a) H_(t-1) + s x_t B_t';
//                y_t = H_t C_t + D x_t;  out = norm(y_t silu(z_t)) over the heads of a group
//   delta        e = exp(-e^a softplus(step + bias));  q, k of length 1, q over sqrt(width);
//                S = e S_(t-1);  S_t = S + k (sigmoid(b) (v - S'k))';  y_t = S_t' q;
//                out = norm(y_t) silu(z_t), head by head
//
// In the ring the convolution is linear, every function of one number is the identity, the state's
// decay is a itself, and nothing is normalised: e = a, s = step + bias.
// Source  Dao and Gu 2024, arXiv 2405.21060, and NemotronHMamba2Mixer (torch_forward) of the
//         transformers library; Yang et al. 2024, arXiv 2412.06464, and Qwen3NextGatedDeltaNet
//         (torch_recurrent_gated_delta_rule) there

#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/device/cpu/call.hpp"

namespace orrery::executor::cpu {

namespace {

using models::ScanRule;
using models::ScanWork;

template <class T>
T sigmoid_of(T x) {
  if constexpr (in_ring<T>) {
    return x;
  } else {
    return T(1) / (T(1) + std::exp(-x));
  }
}
/// Slope of a gate's sigmoid, of which `value` is known.
template <class T>
T sigmoid_slope(T value) {
  if constexpr (in_ring<T>) {
    return T(1);
  } else {
    return value * (T(1) - value);
  }
}
template <class T>
T silu_of(T x) {
  if constexpr (in_ring<T>) {
    return x;
  } else {
    return x * sigmoid_of(x);
  }
}
template <class T>
T silu_slope(T x) {
  if constexpr (in_ring<T>) {
    return T(1);
  } else {
    const T s = sigmoid_of(x);
    return s * (T(1) + x * (T(1) - s));
  }
}
template <class T>
T softplus_of(T x) {
  if constexpr (in_ring<T>) {
    return x;
  } else {
    return std::max(x, T{}) + std::log1p(std::exp(-std::abs(x)));
  }
}
template <class T>
T softplus_slope(T x) {
  if constexpr (in_ring<T>) {
    return T(1);
  } else {
    return sigmoid_of(x);
  }
}

/// What a state keeps from one token to the next: exp(-step e^a), and its slopes in both.
template <class T>
struct Decay {
  T value{}, of_step{}, of_a{};

  Decay(T step, T a) {
    if constexpr (in_ring<T>) {
      value = a;
      of_a = 1;
    } else {
      const T rate = std::exp(a);
      value = std::exp(-step * rate);
      of_step = -rate * value;
      of_a = -step * rate * value;
    }
  }
};

/// x / sqrt(sum(x^2) [/ n] + epsilon), and the gradient of x from that of the result; in the ring
/// x. Source  mean over n of an RMS norm; sum of the l2norm of flash-linear-attention, with 1e-6
template <class T>
class UnitLength {
 public:
  UnitLength(const T* x, std::int64_t n, bool mean, double epsilon)
      : x_{x}, n_{n}, divisor_{mean ? static_cast<T>(n) : T(1)} {
    if constexpr (!in_ring<T>) {
      T squares{};
      for (std::int64_t j = 0; j < n; ++j) squares += x[j] * x[j];
      inverse_ = T(1) / std::sqrt(squares / divisor_ + static_cast<T>(epsilon));
    }
  }

  T operator[](std::int64_t j) const { return x_[j] * inverse_; }
  /// of[j] += dx[j], from the gradient d of the result.
  void add_gradient(const T* d, T* of) const {
    T along{};
    if constexpr (!in_ring<T>) {
      for (std::int64_t j = 0; j < n_; ++j) along += d[j] * x_[j];
      along *= inverse_ * inverse_ / divisor_;
    }
    for (std::int64_t j = 0; j < n_; ++j) of[j] += (d[j] - along * x_[j]) * inverse_;
  }

 private:
  const T* x_;
  std::int64_t n_;
  T divisor_, inverse_ = T(1);
};

/// Where a rank's columns are: of the projection, of what is convolved, and of the output.
class ScanColumns {
 public:
  explicit ScanColumns(const ScanWork& of) : of_{of} {}

  std::int64_t values() const { return of_.heads * of_.value_dim; }
  std::int64_t convolved() const { return values() + 2 * of_.groups * of_.state; }
  std::int64_t per_group() const { return of_.heads / of_.groups; }
  std::int64_t group(std::int64_t h) const { return h / per_group(); }
  bool is_mamba() const { return of_.rule == ScanRule::mamba2; }

  // Among what is convolved.
  std::int64_t value(std::int64_t h) const {
    if (is_mamba()) return h * of_.value_dim;
    return group(h) * of_group() + 2 * of_.state + h % per_group() * of_.value_dim;
  }
  /// Key of a group of heads (B of Mamba-2), and its query (C).
  std::int64_t key(std::int64_t g) const {
    return is_mamba() ? values() + 2 * g * of_.state : g * of_group() + of_.state;
  }
  std::int64_t query(std::int64_t g) const {
    return is_mamba() ? values() + (2 * g + 1) * of_.state : g * of_group();
  }

  // Of the projection.
  std::int64_t projected(std::int64_t convolved) const {
    if (!is_mamba()) return convolved;
    if (convolved >= values()) return values() + convolved;
    const std::int64_t h = convolved / of_.value_dim;
    return (2 * h + 1) * of_.value_dim + convolved % of_.value_dim;
  }
  std::int64_t gate(std::int64_t h) const {
    return is_mamba() ? 2 * h * of_.value_dim : convolved() + h * of_.value_dim;
  }
  std::int64_t step(std::int64_t h) const {
    return values() + convolved() + (is_mamba() ? h : 2 * h + 1);
  }
  std::int64_t strength(std::int64_t h) const { return values() + convolved() + 2 * h; }

 private:
  std::int64_t of_group() const { return 2 * of_.state + per_group() * of_.value_dim; }

  ScanWork of_;
};

/// Rows of the heads' numbers: logarithm of the decay's rate, factor of a value that goes past the
/// state (Mamba-2 only), bias of the step.
struct NumberRows {
  std::int64_t rate = 0, skip = 1, bias = 2;
};

/// The recurrence of one head over one sequence, forward and back. Rows of `states` are the state's
/// [value_dim, state].
template <class T>
class HeadScan {
 public:
  /// `inputs`: convolved columns of the sequence, and of each token the projection's.
  HeadScan(const ScanWork& of, std::int64_t head, const T* inputs, const T* projected,
           std::int64_t width, const T* numbers)
      : of_{of},
        columns_{of},
        h_{head},
        inputs_{inputs},
        projected_{projected},
        width_{width},
        numbers_{numbers},
        rows_{columns_.is_mamba() ? NumberRows{} : NumberRows{.rate = 0, .skip = 0, .bias = 1}} {}

  std::int64_t size() const { return of_.value_dim * of_.state; }

  /// The state after token t from that before it, and the token's output.
  void advance(std::int64_t t, const T* before, T* state, T* y) const {
    columns_.is_mamba() ? mamba(t, before, state, y) : delta(t, before, state, y);
  }

  /// Gradients of token t's inputs, and of the state before it in place of the one after it.
  void back(std::int64_t t, const T* before, const T* after, const T* dy, T* d_state, T* d_inputs,
            T* d_projected, T* d_numbers) const {
    columns_.is_mamba()
        ? mamba_back(t, before, after, dy, d_state, d_inputs, d_projected, d_numbers)
        : delta_back(t, before, after, dy, d_state, d_inputs, d_projected, d_numbers);
  }

 private:
  const T* input(std::int64_t t) const { return inputs_ + t * columns_.convolved(); }
  T number(std::int64_t row) const { return numbers_[row * of_.heads + h_]; }
  std::int64_t key() const { return columns_.key(columns_.group(h_)); }
  std::int64_t query() const { return columns_.query(columns_.group(h_)); }
  T raw_step(std::int64_t t) const {
    return projected_[t * width_ + columns_.step(h_)] + number(rows_.bias);
  }

  bool is_short(T raw) const {
    if constexpr (in_ring<T>) {
      return false;
    } else {
      return softplus_of(raw) < static_cast<T>(of_.least_step);
    }
  }
  T step_of(T raw) const {
    return is_short(raw) ? static_cast<T>(of_.least_step) : softplus_of(raw);
  }
  T slope_of_step(T raw) const { return is_short(raw) ? T{} : softplus_slope(raw); }

  void mamba(std::int64_t t, const T* before, T* state, T* y) const {
    const T* const x = input(t) + columns_.value(h_);
    const T* const b = input(t) + key();
    const T* const c = input(t) + query();
    const T step = step_of(raw_step(t)), skip = number(rows_.skip);
    const T decay = Decay<T>{step, number(rows_.rate)}.value;
    for (std::int64_t p = 0; p < of_.value_dim; ++p) {
      T sum = skip * x[p];
      for (std::int64_t n = 0; n < of_.state; ++n) {
        const std::int64_t at = p * of_.state + n;
        state[at] = decay * before[at] + step * x[p] * b[n];
        sum += state[at] * c[n];
      }
      y[p] = sum;
    }
  }

  void mamba_back(std::int64_t t, const T* before, const T* after, const T* dy, T* d_state,
                  T* d_inputs, T* d_projected, T* d_numbers) const {
    const std::int64_t row = t * columns_.convolved();
    const T* const x = input(t) + columns_.value(h_);
    const T* const b = input(t) + key();
    const T* const c = input(t) + query();
    T* const dx = d_inputs + row + columns_.value(h_);
    T* const db = d_inputs + row + key();
    T* const dc = d_inputs + row + query();
    const T raw = raw_step(t), step = step_of(raw), skip = number(rows_.skip);
    const Decay<T> decay{step, number(rows_.rate)};
    T d_decay{}, d_step{}, d_skip{};
    for (std::int64_t p = 0; p < of_.value_dim; ++p) {
      T of_x{};
      for (std::int64_t n = 0; n < of_.state; ++n) {
        const std::int64_t at = p * of_.state + n;
        dc[n] += dy[p] * after[at];
        const T d = d_state[at] + dy[p] * c[n];
        d_decay += d * before[at];
        of_x += d * b[n];
        db[n] += step * d * x[p];
        d_state[at] = decay.value * d;
      }
      dx[p] += step * of_x + skip * dy[p];
      d_step += of_x * x[p];
      d_skip += dy[p] * x[p];
    }
    d_numbers[rows_.skip * of_.heads + h_] += d_skip;
    steps_back(t, raw, decay, d_decay, d_step, d_projected, d_numbers);
  }

  void steps_back(std::int64_t t, T raw, const Decay<T>& decay, T d_decay, T d_step, T* d_projected,
                  T* d_numbers) const {
    const T d_raw = (d_step + d_decay * decay.of_step) * slope_of_step(raw);
    d_projected[t * width_ + columns_.step(h_)] = d_raw;
    d_numbers[rows_.bias * of_.heads + h_] += d_raw;
    d_numbers[rows_.rate * of_.heads + h_] += d_decay * decay.of_a;
  }

  T query_scale() const {
    if constexpr (in_ring<T>) {
      return T(1);
    } else {
      return T(1) / std::sqrt(static_cast<T>(of_.state));
    }
  }
  UnitLength<T> unit(const T* x) const { return {x, of_.state, false, 1e-6}; }

  void delta(std::int64_t t, const T* before, T* state, T* y) const {
    const T* const v = input(t) + columns_.value(h_);
    const UnitLength<T> k = unit(input(t) + key()), q = unit(input(t) + query());
    const T decay = Decay<T>{softplus_of(raw_step(t)), number(rows_.rate)}.value;
    const T strength = sigmoid_of(projected_[t * width_ + columns_.strength(h_)]);
    for (std::int64_t p = 0; p < of_.value_dim; ++p) {
      T held{}, sum{};
      for (std::int64_t n = 0; n < of_.state; ++n) held += decay * before[p * of_.state + n] * k[n];
      const T written = strength * (v[p] - held);
      for (std::int64_t n = 0; n < of_.state; ++n) {
        const std::int64_t at = p * of_.state + n;
        state[at] = decay * before[at] + k[n] * written;
        sum += state[at] * q[n];
      }
      y[p] = sum * query_scale();
    }
  }

  void delta_back(std::int64_t t, const T* before, const T* after, const T* dy, T* d_state,
                  T* d_inputs, T* d_projected, T* d_numbers) const {
    const std::int64_t row = t * columns_.convolved();
    const T* const v = input(t) + columns_.value(h_);
    const UnitLength<T> k = unit(input(t) + key()), q = unit(input(t) + query());
    const T raw = raw_step(t);
    const Decay<T> decay{softplus_of(raw), number(rows_.rate)};
    const std::int64_t at_strength = t * width_ + columns_.strength(h_);
    const T strength = sigmoid_of(projected_[at_strength]);
    std::vector<T> dk(static_cast<std::size_t>(of_.state)), dq(dk);
    T d_decay{}, d_strength{};
    for (std::int64_t p = 0; p < of_.value_dim; ++p) {
      const std::int64_t first = p * of_.state;
      T held{}, d_written{};
      for (std::int64_t n = 0; n < of_.state; ++n) held += decay.value * before[first + n] * k[n];
      const T written = strength * (v[p] - held), dy_scaled = dy[p] * query_scale();
      for (std::int64_t n = 0; n < of_.state; ++n) {
        const auto at = static_cast<std::size_t>(n);
        dq[at] += after[first + n] * dy_scaled;
        T& d = d_state[first + n];
        d += q[n] * dy_scaled;
        d_written += d * k[n];
        dk[at] += d * written;
      }
      d_strength += d_written * (v[p] - held);
      d_inputs[row + columns_.value(h_) + p] += strength * d_written;
      const T d_held = T{} - strength * d_written;
      for (std::int64_t n = 0; n < of_.state; ++n) {
        T& d = d_state[first + n];
        dk[static_cast<std::size_t>(n)] += decay.value * before[first + n] * d_held;
        d += k[n] * d_held;
        d_decay += d * before[first + n];
        d *= decay.value;
      }
    }
    k.add_gradient(dk.data(), d_inputs + row + key());
    q.add_gradient(dq.data(), d_inputs + row + query());
    d_projected[at_strength] = d_strength * sigmoid_slope(strength);
    steps_back(t, raw, decay, d_decay, T{}, d_projected, d_numbers);
  }

  const ScanWork& of_;
  ScanColumns columns_;
  std::int64_t h_;
  const T *inputs_, *projected_;
  std::int64_t width_;
  const T* numbers_;
  NumberRows rows_;
};

/// One sequence of one call. Reads: [output gradient,] projection [, output, what else was kept];
/// the convolution, the heads' numbers and the norm's weight are the last three.
template <class T>
class SequenceScan {
 public:
  SequenceScan(const Call<T>& call, std::int64_t first_row)
      : of_{call.operation().scan()},
        columns_{of_},
        tokens_{call.kernel.place.sequence},
        width_{call.in(is_backward(call) ? 1 : 0).shape[2]},
        projected_{call.reads[is_backward(call) ? 1 : 0] + first_row * width_},
        taps_{call.reads[parameters(call)]},
        has_bias_{call.in(parameters(call)).shape[1] > of_.taps},
        numbers_{call.reads[parameters(call) + 1]},
        norm_{call.reads[parameters(call) + 2]},
        convolved_(static_cast<std::size_t>(tokens_ * columns_.convolved())),
        inputs_(convolved_.size()),
        y_(static_cast<std::size_t>(tokens_ * columns_.values())) {
    convolve();
  }

  static bool is_backward(const Call<T>& call) {
    return call.operation().kind == models::OpKind::scan_backward;
  }
  static std::size_t parameters(const Call<T>& call) { return call.kernel.reads.size() - 3; }

  void forward(T* out) {
    for (std::int64_t h = 0; h < of_.heads; ++h) run(head(h));
    for_each_norm([&](std::int64_t at, std::int64_t n, const T* z, std::int64_t, const T* weight) {
      const std::vector<T> x = normed(at, n, z);
      const UnitLength<T> unit{x.data(), n, true, of_.epsilon};
      for (std::int64_t j = 0; j < n; ++j) {
        out[at + j] = unit[j] * weight[j];
        if (!columns_.is_mamba()) out[at + j] *= silu_of(z[j]);
      }
    });
  }

  /// Gradients of the projection are overwritten, those of parameters added to; null: frozen.
  void backward(const T* dy, T* d_projected, T* d_taps, T* d_numbers, T* d_norm) {
    for (std::int64_t h = 0; h < of_.heads; ++h) run(head(h));
    std::vector<T> of_numbers(static_cast<std::size_t>(3 * of_.heads));
    std::vector<T> of_norm(static_cast<std::size_t>(columns_.values()));
    std::vector<T> d_y(y_.size()), d_inputs(inputs_.size());
    norm_back(dy, d_y, d_projected, of_norm);
    for (std::int64_t h = 0; h < of_.heads; ++h) {
      run_back(head(h), h, d_y, d_inputs, d_projected, of_numbers);
    }
    convolve_back(d_inputs, d_projected, d_taps);
    const std::int64_t numbers = (columns_.is_mamba() ? 3 : 2) * of_.heads;
    for (std::int64_t i = 0; d_numbers != nullptr && i < numbers; ++i) {
      d_numbers[i] += of_numbers[static_cast<std::size_t>(i)];
    }
    const std::int64_t weights = columns_.is_mamba() ? columns_.values() : of_.value_dim;
    for (std::int64_t i = 0; d_norm != nullptr && i < columns_.values(); ++i) {
      d_norm[i % weights] += of_norm[static_cast<std::size_t>(i)];
    }
  }

 private:
  struct Head {
    HeadScan<T> scan;
    std::int64_t at;  // of its outputs in a row
  };
  Head head(std::int64_t h) const {
    return {HeadScan<T>{of_, h, inputs_.data(), projected_, width_, numbers_}, h * of_.value_dim};
  }

  void convolve() {
    const std::int64_t columns = columns_.convolved();
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t c = 0; c < columns; ++c) {
        T sum = has_bias_ ? taps_[of_.taps * columns + c] : T{};
        for (std::int64_t k = std::max<std::int64_t>(0, of_.taps - 1 - t); k < of_.taps; ++k) {
          const std::int64_t source = t - of_.taps + 1 + k;
          sum += taps_[k * columns + c] * projected_[source * width_ + columns_.projected(c)];
        }
        convolved_[static_cast<std::size_t>(t * columns + c)] = sum;
        inputs_[static_cast<std::size_t>(t * columns + c)] = silu_of(sum);
      }
    }
  }

  void convolve_back(const std::vector<T>& d_inputs, T* d_projected, T* d_taps) const {
    const std::int64_t columns = columns_.convolved();
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t c = 0; c < columns; ++c)
        d_projected[t * width_ + columns_.projected(c)] = 0;
    }
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t c = 0; c < columns; ++c) {
        const auto at = static_cast<std::size_t>(t * columns + c);
        const T d = d_inputs[at] * silu_slope(convolved_[at]);
        if (d_taps != nullptr && has_bias_) d_taps[of_.taps * columns + c] += d;
        for (std::int64_t k = std::max<std::int64_t>(0, of_.taps - 1 - t); k < of_.taps; ++k) {
          const std::int64_t from = (t - of_.taps + 1 + k) * width_ + columns_.projected(c);
          d_projected[from] += d * taps_[k * columns + c];
          if (d_taps != nullptr) d_taps[k * columns + c] += d * projected_[from];
        }
      }
    }
  }

  T* outputs(std::int64_t t, std::int64_t at) { return y_.data() + t * columns_.values() + at; }

  void run(const Head& of) {
    std::vector<T> state(static_cast<std::size_t>(of.scan.size()));
    for (std::int64_t t = 0; t < tokens_; ++t) {
      of.scan.advance(t, state.data(), state.data(), outputs(t, of.at));
    }
  }

  /// From the last chunk to the first: the states of its tokens again, then back.
  void run_back(const Head& of, std::int64_t h, const std::vector<T>& d_y, std::vector<T>& d_inputs,
                T* d_projected, std::vector<T>& d_numbers) {
    const auto size = static_cast<std::size_t>(of.scan.size());
    const std::int64_t chunks = (tokens_ + of_.chunk - 1) / of_.chunk;
    std::vector<std::vector<T>> begins{std::vector<T>(size)};
    std::vector<T> d_state(size), state(size), y(static_cast<std::size_t>(of_.value_dim));
    for (std::int64_t t = 0; t < tokens_; ++t) {
      if (t > 0 && t % of_.chunk == 0) begins.push_back(state);
      of.scan.advance(t, state.data(), state.data(), y.data());
    }
    for (std::int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
      const std::int64_t first = chunk * of_.chunk, end = std::min(tokens_, first + of_.chunk);
      std::vector<std::vector<T>> states{begins[static_cast<std::size_t>(chunk)]};
      for (std::int64_t t = first; t < end; ++t) {
        std::vector<T> next(size);
        of.scan.advance(t, states.back().data(), next.data(), y.data());
        states.push_back(std::move(next));
      }
      for (std::int64_t t = end - 1; t >= first; --t) {
        const auto at = static_cast<std::size_t>(t - first);
        of.scan.back(t, states[at].data(), states[at + 1].data(),
                     d_y.data() + t * columns_.values() + h * of_.value_dim, d_state.data(),
                     d_inputs.data(), d_projected, d_numbers.data());
      }
    }
  }

  /// Calls visit(first column, columns, their gates, the gates' place, weights) for all that is
  /// normalised at once: a head's values, or with Mamba-2 those of a group, head by head.
  template <class Visit>
  void for_each_norm(Visit visit) {
    const std::int64_t d = of_.value_dim, heads = columns_.is_mamba() ? columns_.per_group() : 1;
    std::vector<T> z(static_cast<std::size_t>(heads * d));
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t h = 0; h < of_.heads; h += heads) {
        for (std::int64_t i = 0; i < heads; ++i) {
          std::copy_n(projected_ + t * width_ + columns_.gate(h + i), d, z.data() + i * d);
        }
        const T* const weight = columns_.is_mamba() ? norm_ + h * d : norm_;
        visit(t * columns_.values() + h * d, heads * d, z.data(), t * of_.heads + h, weight);
      }
    }
  }

  /// What is normalised: of Mamba-2 the gated outputs.
  std::vector<T> normed(std::int64_t at, std::int64_t n, const T* z) const {
    std::vector<T> x(y_.begin() + at, y_.begin() + at + n);
    for (std::size_t j = 0; columns_.is_mamba() && j < x.size(); ++j) x[j] *= silu_of(z[j]);
    return x;
  }

  void norm_back(const T* dy, std::vector<T>& d_y, T* d_projected, std::vector<T>& d_norm) {
    const bool mamba = columns_.is_mamba();
    for_each_norm(
        [&](std::int64_t at, std::int64_t n, const T* z, std::int64_t place, const T* weight) {
          const std::int64_t t = place / of_.heads, h = place % of_.heads;
          const std::vector<T> x = normed(at, n, z);
          const UnitLength<T> unit{x.data(), n, true, of_.epsilon};
          std::vector<T> d(static_cast<std::size_t>(n)), d_x(d);
          for (std::int64_t j = 0; j < n; ++j) {
            T g = dy[at + j];
            T& gate =
                d_projected[t * width_ + columns_.gate(h + j / of_.value_dim) + j % of_.value_dim];
            if (!mamba) {
              gate = g * unit[j] * weight[j] * silu_slope(z[j]);
              g *= silu_of(z[j]);
            }
            d_norm[static_cast<std::size_t>(h * of_.value_dim + j)] += g * unit[j];
            d[static_cast<std::size_t>(j)] = g * weight[j];
          }
          unit.add_gradient(d.data(), d_x.data());
          for (std::int64_t j = 0; j < n; ++j) {
            const auto i = static_cast<std::size_t>(j);
            const auto y = static_cast<std::size_t>(at + j);
            if (mamba) {
              d_projected[t * width_ + columns_.gate(h + j / of_.value_dim) + j % of_.value_dim] =
                  d_x[i] * y_[y] * silu_slope(z[j]);
              d_x[i] *= silu_of(z[j]);
            }
            d_y[y] = d_x[i];
          }
        });
  }

  const ScanWork& of_;
  ScanColumns columns_;
  std::int64_t tokens_, width_;
  const T* projected_;
  const T* taps_;
  bool has_bias_;
  const T *numbers_, *norm_;
  std::vector<T> convolved_, inputs_, y_;
};

template <class T>
void scan(const Call<T>& call) {
  const std::int64_t tokens = call.kernel.place.sequence, columns = call.out(0).shape[2];
  for (std::int64_t row = 0; row < call.in(0).shape[1]; row += tokens) {
    SequenceScan<T>{call, row}.forward(call.writes[0] + row * columns);
  }
  // What kernels that work by chunks keep for backward is not needed here.
  if (call.kernel.writes.size() > 1) std::fill_n(call.writes[1], call.out(1).elements(), T{});
}

template <class T>
void scan_backward(const Call<T>& call) {
  const std::int64_t tokens = call.kernel.place.sequence;
  const std::int64_t columns = call.in(0).shape[2], width = call.out(0).shape[2];
  for (std::int64_t row = 0; row < call.in(0).shape[1]; row += tokens) {
    SequenceScan<T>{call, row}.backward(call.reads[0] + row * columns, call.writes[0] + row * width,
                                        call.writes[1], call.writes[2], call.writes[3]);
  }
}

}  // namespace

void add_scans(KernelTable& table) {
  table.set(models::OpKind::scan, [](const auto& call) { scan(call); });
  table.set(models::OpKind::scan_backward, [](const auto& call) { scan_backward(call); });
}

}  // namespace orrery::executor::cpu
