#pragma once
// The callback of an event: any callable whose captures fit in 48 bytes, stored inline without
// allocation. It can be moved but not copied.

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "sim/errors.hpp"

namespace orrery {

class Handler {
 public:
  static constexpr std::size_t capacity = 48;

  Handler() = default;

  template <class Callable,
            class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<Callable>, Handler> &&
                                     std::is_invocable_v<std::remove_cvref_t<Callable>&>>>
  Handler(Callable&& callable) : operations_{&operations_of<std::remove_cvref_t<Callable>>} {
    using Held = std::remove_cvref_t<Callable>;
    static_assert(sizeof(Held) <= capacity, "capture at most 48 bytes: keep the rest in an object");
    static_assert(alignof(Held) <= alignof(void*), "captures are aligned to a pointer");
    static_assert(std::is_nothrow_move_constructible_v<Held>, "captures move without throwing");
    ::new (static_cast<void*>(storage_)) Held(std::forward<Callable>(callable));
  }

  Handler(Handler&& other) noexcept { take(other); }
  Handler& operator=(Handler&& other) noexcept {
    if (this != &other) {
      reset();
      take(other);
    }
    return *this;
  }
  ~Handler() { reset(); }

  explicit operator bool() const { return operations_ != nullptr; }

  /// Errors  empty: ContractError
  void operator()() {
    ensure(operations_ != nullptr, "an empty handler was called");
    operations_->call(storage_);
  }

  void reset() {
    if (operations_ != nullptr && operations_->destroy != nullptr) operations_->destroy(storage_);
    operations_ = nullptr;
  }

 private:
  struct Operations {
    void (*call)(void*);
    void (*move)(void* from, void* to);  // null: trivially copyable, moved by memcpy
    void (*destroy)(void*);              // null: trivially destructible
  };

  template <class Held>
  static void call(void* held) {
    (*static_cast<Held*>(held))();
  }
  template <class Held>
  static void move(void* from, void* to) {
    ::new (to) Held(std::move(*static_cast<Held*>(from)));
    static_cast<Held*>(from)->~Held();
  }
  template <class Held>
  static void destroy(void* held) {
    static_cast<Held*>(held)->~Held();
  }
  template <class Held>
  static constexpr bool plain = std::is_trivially_copyable_v<Held>;
  template <class Held>
  static constexpr Operations operations_of{&Handler::call<Held>,
                                            plain<Held> ? nullptr : &Handler::move<Held>,
                                            plain<Held> ? nullptr : &Handler::destroy<Held>};

  void take(Handler& other) noexcept {
    operations_ = std::exchange(other.operations_, nullptr);
    if (operations_ == nullptr) return;
    if (operations_->move != nullptr) {
      operations_->move(other.storage_, storage_);
    } else {
      std::memcpy(storage_, other.storage_, capacity);
    }
  }

  alignas(void*) std::byte storage_[capacity]{};
  const Operations* operations_ = nullptr;
};

}  // namespace orrery
