// Moves token rows to the slots of experts and back. A token's slots follow from the experts that
// were chosen, in token order; each move computes them again.

#include <algorithm>
#include <vector>

#include "executor/device/cpu/call.hpp"
#include "sim/errors.hpp"

namespace orrery::executor::cpu {

namespace {

using models::RowMove;

/// Assigns slots to a rank's tokens.
class Slots {
 public:
  Slots(const View& chosen, const View& slots)
      : chosen_{reinterpret_cast<const std::int32_t*>(chosen.data)},
        tokens_{chosen.shape[1]},
        per_token_{chosen.shape[2]},
        room_{slots.shape[1]},
        taken_(static_cast<std::size_t>(slots.shape[0]), 0) {}

  /// Calls visit(token, choice, slot) for each choice of an expert that got a slot.
  template <class Visit>
  void each(Visit visit) {
    for (std::int64_t token = 0; token < tokens_; ++token) {
      for (std::int64_t j = 0; j < per_token_; ++j) {
        const std::int32_t expert = chosen_[token * per_token_ + j];
        const std::int64_t next = taken_[static_cast<std::size_t>(expert)]++;
        if (next < room_) visit(token, j, expert * room_ + next);
      }
    }
  }

 private:
  const std::int32_t* chosen_;
  std::int64_t tokens_, per_token_, room_;
  std::vector<std::int64_t> taken_;  // slots, by expert
};

/// One move of rows between tokens [tokens, n] and slots [slots, n].
template <class T>
class RowMover {
 public:
  explicit RowMover(const Call<T>& call) : call_{call}, n_{call.out(0).shape[2]} {}

  void dispatch() const {
    std::fill_n(out(), call_.out(0).elements(), T{});
    Slots{call_.in(1), call_.out(0)}.each([&](std::int64_t token, std::int64_t, std::int64_t slot) {
      std::copy_n(in() + token * n_, n_, out() + slot * n_);
    });
  }

  void combine() const {
    std::fill_n(out(), call_.out(0).elements(), T{});
    const std::int64_t k = call_.in(2).shape[2];
    const bool keeps = call_.kernel.writes.size() > 1;  // the slots, for backward
    Slots{call_.in(2), call_.in(0)}.each(
        [&](std::int64_t token, std::int64_t j, std::int64_t slot) {
          add(call_.reads[1][token * k + j], in() + slot * n_, out() + token * n_);
          if (keeps) std::copy_n(in() + slot * n_, n_, call_.writes[1] + slot * n_);
        });
  }

  void combine_backward() const {
    std::fill_n(out(), call_.out(0).elements(), T{});
    std::fill_n(call_.writes[1], call_.out(1).elements(), T{});
    const std::int64_t k = call_.in(2).shape[2];
    Slots{call_.in(2), call_.out(0)}.each(
        [&](std::int64_t token, std::int64_t j, std::int64_t slot) {
          const T* const gradient = in() + token * n_;
          const T* const kept = call_.reads[3] + slot * n_;
          add(call_.reads[1][token * k + j], gradient, out() + slot * n_);
          T sum{};
          for (std::int64_t i = 0; i < n_; ++i) sum += gradient[i] * kept[i];
          call_.writes[1][token * k + j] = sum;
        });
  }

  void dispatch_backward() const {
    std::fill_n(out(), call_.out(0).elements(), T{});
    Slots{call_.in(1), call_.in(0)}.each([&](std::int64_t token, std::int64_t, std::int64_t slot) {
      add(T{1}, in() + slot * n_, out() + token * n_);
    });
  }

  /// Transposes [outer, inner, a rank's slots of an expert, n] to [inner, outer, ...].
  void transpose(std::int64_t outer, std::int64_t inner) const {
    const std::int64_t size = call_.out(0).elements() / (outer * inner);
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        std::copy_n(in() + (o * inner + i) * size, size, out() + (i * outer + o) * size);
      }
    }
  }

 private:
  const T* in() const { return call_.reads[0]; }
  T* out() const { return call_.writes[0]; }
  void add(T factor, const T* row, T* to) const {
    for (std::int64_t i = 0; i < n_; ++i) to[i] += factor * row[i];
  }

  const Call<T>& call_;
  std::int64_t n_;
};

template <class T>
void move_rows(const Call<T>& call) {
  const RowMover<T> rows{call};
  const std::int64_t senders = call.operation().source_ranks(), experts = call.out(0).shape[0];
  switch (call.operation().moves()) {
    case RowMove::dispatch:
      return rows.dispatch();
    case RowMove::combine:
      return rows.combine();
    case RowMove::combine_backward:
      return rows.combine_backward();
    case RowMove::dispatch_backward:
      return rows.dispatch_backward();
    case RowMove::by_expert:
      return rows.transpose(senders, experts);
    case RowMove::by_rank:
      return rows.transpose(experts, senders);
    case RowMove::none:
      break;
  }
  throw ContractError{"a permutation does not say which"};
}

}  // namespace

void add_row_moves(KernelTable& table) {
  table.set(models::OpKind::permute, [](const auto& call) { move_rows(call); });
  table.set(models::OpKind::unpermute, [](const auto& call) { move_rows(call); });
}

}  // namespace orrery::executor::cpu
