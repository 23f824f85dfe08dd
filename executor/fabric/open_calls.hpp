#pragma once
// What fabrics keep of the calls in progress, and of an abort.

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "executor/errors.hpp"
#include "executor/fabric/fabric.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

/// The calls that were started and not waited for yet, by request.
/// Errors  of `at` and `erase`, a request that was waited for: ContractError
template <class Open>
class OpenCalls {
 public:
  Request keep(Open open) {
    calls_.emplace(++last_, std::move(open));
    return {last_};
  }
  Open& at(Request request) {
    const auto found = calls_.find(request.id);
    ensure(found != calls_.end(), "a request is waited for twice");
    return found->second;
  }
  void erase(Request request) { calls_.erase(request.id); }
  bool empty() const { return calls_.empty(); }
  const std::unordered_map<std::uint64_t, Open>& all() const { return calls_; }

 private:
  std::unordered_map<std::uint64_t, Open> calls_;
  std::uint64_t last_ = 0;
};

/// An abort that any thread may ask for. The first reason counts.
class FabricAbort {
 public:
  void ask(std::string_view why) noexcept {
    const std::lock_guard guard{lock_};
    if (!asked_) why_ = why;
    asked_ = true;
  }
  bool asked() const { return asked_; }
  /// Errors  once it was asked for: RunFailure{peer_failed} with the reason
  void refuse_if_asked() {
    if (!asked_) return;
    const std::lock_guard guard{lock_};
    throw RunFailure{Exit::peer_failed, why_};
  }

 private:
  std::atomic<bool> asked_{false};
  std::mutex lock_;
  std::string why_;
};

}  // namespace orrery::executor
