// Fused attention and its backward: of whole sequences, or of a rank's tokens to the keys of some
// ranks that share their sequence (models/operations/parts/context.cpp). The scores of a head are
// computed for one run of consecutive queries at a time, with those runs of keys that any of them
// sees. Cross-attention has keys and values of another sequence, all of which every query sees.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "executor/device/cpu/attention_places.hpp"
#include "executor/device/cpu/call.hpp"
#include "executor/device/cpu/exponential.hpp"
#include "executor/device/cpu/multiply.hpp"

namespace orrery::executor::cpu {

namespace {

using models::SequencePart;

/// Rows that hold a head's keys and values, or their gradients.
template <class T>
struct KeyRows {
  T* data = nullptr;
  std::int64_t columns = 0, key = 0, value = 0;

  T* keys(std::int64_t row) const { return data + row * columns + key; }
  T* values(std::int64_t row) const { return data + row * columns + value; }
};

template <class T>
class SequenceAttention {
 public:
  explicit SequenceAttention(const Call<T>& call)
      : call_{call},
        of_{call.operation().attention()},
        part_{call.operation().sequence()},
        backward_{call.operation().kind == models::OpKind::attention_backward},
        operands_{call.kernel.reads.size() - (of_.sinks ? 1 : 0)},
        apart_{operands_ == (backward_ ? 5U : 2U)},
        places_{call.kernel, apart_},
        columns_{call.in(0).shape[2]},
        value_{of_.value_width()} {}

  void run() {
    if (backward_) clear_gradients();
    for (std::int64_t b = 0; b < places_.batch(); ++b) {
      keys_ = places_.keys(b);
      const std::vector<PlaceRun> queries = places_.queries(b);
      for (std::int64_t h = 0; h < of_.heads; ++h) {
        for (const PlaceRun& each : queries) one(b, h, each);
      }
    }
  }

 private:
  KeyRows<T> rows_of(T* data, const View& view, std::int64_t h) const {
    const bool with_queries = !of_.crosses && view.shape[2] == columns_;
    const std::int64_t first = with_queries ? of_.query_columns() : 0;
    const std::int64_t key = first + h / (of_.heads / of_.kv_heads) * of_.head_dim;
    const std::int64_t value =
        first + of_.kv_heads * of_.head_dim + h / (of_.heads / of_.kv_heads) * value_;
    return {data, view.shape[2], key, value};
  }
  KeyRows<T> keys_of(std::int64_t h) const {
    const std::size_t which = apart_ ? 1 : 0;
    return rows_of(call_.reads[which], call_.in(which), h);
  }
  /// Writes: gradients of queries, keys and values, of gathered keys and values apart, of sinks.
  std::size_t key_gradients() const {
    return of_.crosses || part_.keys == SequencePart::Keys::gathered ? 1 : 0;
  }
  KeyRows<T> gradients_of(std::int64_t h) const {
    const std::size_t which = key_gradients();
    return rows_of(call_.writes[which], call_.out(which), h);
  }

  /// Zeroes the gradients of queries, keys and values, not those of gates; unless these are the
  /// late queries: those add to the gradients that the early ones left.
  void clear_gradients() {
    if (part_.queries == SequencePart::Queries::late) return;
    for (std::size_t i = 0; i <= key_gradients(); ++i) {
      const std::int64_t columns = call_.out(i).shape[2];
      const std::int64_t gates = of_.gated && columns == columns_ ? of_.heads : 0;
      const std::int64_t d = of_.head_dim, after = gates * 2 * d;
      for (T* row = call_.writes[i]; row < call_.writes[i] + call_.out(i).elements();
           row += columns) {
        for (std::int64_t h = 0; h < gates; ++h) std::fill_n(row + h * 2 * d, d, T{});
        std::fill_n(row + after, columns - after, T{});
      }
    }
  }
  const T* sink_of(std::int64_t h) const {
    return of_.sinks ? call_.reads[operands_] + h : nullptr;
  }

  void one(std::int64_t b, std::int64_t h, const PlaceRun& queries) {
    std::int64_t width = 0;
    const std::vector<PlaceRun> seen = places_.attended_by(queries, keys_, width);
    scores_.assign(static_cast<std::size_t>(queries.count * width), T{});
    const T* const asking = call_.reads[0] + queries.row * columns_ + h * of_.query_step();
    const KeyRows<T> keys = keys_of(h);
    for (const PlaceRun& each : seen) {
      multiply<T>({.m = queries.count, .n = each.count, .k = of_.head_dim, .transpose_b = true},
                  {asking, keys.keys(each.row), scores_.data() + each.column, columns_,
                   keys.columns, width});
    }
    const std::int64_t length = places_.length();
    T* const sums = (backward_ ? call_.reads[apart_ ? 3 : 2] : call_.writes[1]) +
                    (b * of_.heads + h) * length + (queries.row - b * length);
    backward_ ? backward(h, queries, seen, width, sums) : forward(h, queries, seen, width, sums);
  }

  /// Calls `visible(first, last)` for the columns of a row that its query sees; zeroes the others.
  template <class Visible>
  void for_seen(const PlaceRun& query, std::int64_t row, const std::vector<PlaceRun>& seen, T* of,
                Visible visible) const {
    const std::int64_t place = query.place + row;
    const std::int64_t low = places_.first_seen(place), high = places_.end_seen(place);
    for (const PlaceRun& each : seen) {
      const std::int64_t from = std::clamp<std::int64_t>(low - each.place, 0, each.count);
      const std::int64_t to = std::clamp<std::int64_t>(high - each.place, from, each.count);
      std::fill(of + each.column, of + each.column + from, T{});
      std::fill(of + each.column + to, of + each.column + each.count, T{});
      visible(each.column + from, each.column + to);
    }
  }

  T scale() const { return static_cast<T>(of_.score_scale()); }

  /// The column of a query's own key; nothing if it is not among those seen.
  static std::optional<std::int64_t> own_column(std::int64_t place,
                                                const std::vector<PlaceRun>& seen) {
    for (const PlaceRun& each : seen) {
      if (each.place <= place && place < each.place + each.count) {
        return each.column + place - each.place;
      }
    }
    return std::nullopt;
  }

  /// Replaces a row's scores by their softmax, and writes their log-sum-exp. In the ring a sink is
  /// added to the score of a query's own key.
  void softmax_row(const PlaceRun& queries, std::int64_t row, const std::vector<PlaceRun>& seen,
                   T* of, T& log_sum, const T* sink) const {
    if constexpr (in_ring<T>) {
      for_seen(queries, row, seen, of, [](auto...) {});
      const auto own = own_column(queries.place + row, seen);
      if (sink != nullptr && own) of[*own] += *sink;
      log_sum = T{};
    } else {
      T largest = -std::numeric_limits<T>::infinity(), sum{};
      if (sink != nullptr) largest = *sink / scale();
      for_seen(queries, row, seen, of, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t j = first; j < last; ++j) largest = std::max(largest, of[j]);
      });
      if (sink != nullptr) sum = exponential(*sink - largest * scale());
      for_seen(queries, row, seen, of, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t j = first; j < last; ++j) {
          of[j] = exponential((of[j] - largest) * scale());
          sum += of[j];
        }
      });
      for_seen(queries, row, seen, of, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t j = first; j < last; ++j) of[j] /= sum;
      });
      log_sum = largest * scale() + std::log(sum);  // -infinity where no key is seen
    }
  }

  void forward(std::int64_t h, const PlaceRun& queries, const std::vector<PlaceRun>& seen,
               std::int64_t width, T* sums) {
    const std::int64_t columns = call_.out(0).shape[2];
    T* const out = call_.writes[0] + queries.row * columns + h * value_;
    for (std::int64_t i = 0; i < queries.count; ++i) {
      softmax_row(queries, i, seen, scores_.data() + i * width, sums[i], sink_of(h));
      std::fill_n(out + i * columns, value_, T{});
    }
    const KeyRows<T> keys = keys_of(h);
    for (const PlaceRun& each : seen) {
      multiply<T>(
          {.m = queries.count, .n = value_, .k = each.count, .accumulate = true},
          {scores_.data() + each.column, keys.values(each.row), out, width, keys.columns, columns});
    }
  }

  /// Recomputes P from the scores and forward's log-sum-exp: exp(scale score - log-sum-exp). In the
  /// ring P is the score.
  void softmax_row_again(const PlaceRun& queries, std::int64_t row,
                         const std::vector<PlaceRun>& seen, T* of, T log_sum, const T* sink) const {
    for_seen(queries, row, seen, of, [&](std::int64_t first, std::int64_t last) {
      if constexpr (!in_ring<T>) {
        for (std::int64_t j = first; j < last; ++j) of[j] = exponential(of[j] * scale() - log_sum);
      }
    });
    if constexpr (in_ring<T>) {
      const auto own = own_column(queries.place + row, seen);
      if (sink != nullptr && own) of[*own] += *sink;
    }
  }

  /// Gradient of a head's sink: -exp(sink - log-sum-exp) rowsum(dO O); in the ring dP of a query's
  /// own key. Before `slope`.
  void add_to_sink(const PlaceRun& queries, std::int64_t row, const std::vector<PlaceRun>& seen,
                   const T* slopes, T log_sum, T product, std::int64_t h) const {
    const std::size_t which = key_gradients() + 1;
    if (!of_.sinks || call_.kernel.writes.size() <= which) return;  // none, or frozen
    T& sum = call_.writes[which][h];
    if constexpr (in_ring<T>) {
      const auto own = own_column(queries.place + row, seen);
      if (own) sum += slopes[*own];
    } else {
      sum -= exponential(*sink_of(h) - log_sum) * product;
    }
  }

  /// Replaces dP by dS = P (dP - rowsum(dO O)) scale; in the ring dS is dP.
  void slope(const PlaceRun& queries, std::int64_t row, const std::vector<PlaceRun>& seen,
             const T* weights, T* of, T product) const {
    for_seen(queries, row, seen, of, [&](std::int64_t first, std::int64_t last) {
      if constexpr (!in_ring<T>) {
        for (std::int64_t j = first; j < last; ++j) {
          of[j] = weights[j] * (of[j] - product) * scale();
        }
      }
    });
  }

  void backward(std::int64_t h, const PlaceRun& queries, const std::vector<PlaceRun>& seen,
                std::int64_t width, const T* sums) {
    const std::size_t made = apart_ ? 2 : 1, arrived = operands_ - 1;
    const std::int64_t columns = call_.in(made).shape[2];
    const std::int64_t at = queries.row * columns + h * value_;
    const T* const out = call_.reads[made] + at;
    const T* const d_out = call_.reads[arrived] + at;
    const KeyRows<T> keys = keys_of(h);
    slopes_.assign(static_cast<std::size_t>(queries.count * width), T{});
    for (const PlaceRun& each : seen) {
      multiply<T>({.m = queries.count, .n = each.count, .k = value_, .transpose_b = true},
                  {d_out, keys.values(each.row), slopes_.data() + each.column, columns,
                   keys.columns, width});
    }
    for (std::int64_t i = 0; i < queries.count; ++i) {
      T product{};
      for (std::int64_t j = 0; j < value_; ++j) {
        product += d_out[i * columns + j] * out[i * columns + j];
      }
      T* const weights = scores_.data() + i * width;
      softmax_row_again(queries, i, seen, weights, sums[i], sink_of(h));
      add_to_sink(queries, i, seen, slopes_.data() + i * width, sums[i], product, h);
      slope(queries, i, seen, weights, slopes_.data() + i * width, product);
    }
    add_gradients(h, queries, seen, width, d_out, columns);
  }

  void add_gradients(std::int64_t h, const PlaceRun& queries, const std::vector<PlaceRun>& seen,
                     std::int64_t width, const T* d_out, std::int64_t columns) {
    const std::int64_t d = of_.head_dim, n = queries.count;
    const std::int64_t at = queries.row * columns_ + h * of_.query_step();
    const KeyRows<T> keys = keys_of(h), gradients = gradients_of(h);
    for (const PlaceRun& each : seen) {
      const T* const slopes = slopes_.data() + each.column;
      multiply<T>(
          {.m = n, .n = d, .k = each.count, .accumulate = true},
          {slopes, keys.keys(each.row), call_.writes[0] + at, width, keys.columns, columns_});
      multiply<T>({.m = each.count, .n = d, .k = n, .transpose_a = true, .accumulate = true},
                  {slopes, call_.reads[0] + at, gradients.keys(each.row), width, columns_,
                   gradients.columns});
      multiply<T>({.m = each.count, .n = value_, .k = n, .transpose_a = true, .accumulate = true},
                  {scores_.data() + each.column, d_out, gradients.values(each.row), width, columns,
                   gradients.columns});
    }
  }

  const Call<T>& call_;
  const models::AttentionShape& of_;
  const SequencePart& part_;
  bool backward_;
  std::size_t operands_;  // that it reads, without sinks
  bool apart_;            // keys and values are a separate operand
  AttentionPlaces places_;
  std::int64_t columns_;  // of reads[0], whose rows begin with queries
  std::int64_t value_;    // width of a head's value
  std::vector<PlaceRun> keys_;
  std::vector<T> scores_, slopes_;
};

template <class T>
void attention(const Call<T>& call) {
  SequenceAttention<T>{call}.run();
}

}  // namespace

void add_fused_attention(KernelTable& table) {
  table.set(models::OpKind::attention, [](const auto& call) { attention(call); });
  table.set(models::OpKind::attention_backward, [](const auto& call) { attention(call); });
}

}  // namespace orrery::executor::cpu
