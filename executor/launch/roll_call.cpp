#include "executor/launch/roll_call.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::executor {

namespace {

/// A rank is working if it used at least one part in 50 of the time between two beats as CPU time:
/// even work that is starved of its core gets that much.
constexpr int least_share_of_work = 50;

/// So long a rank may at least use CPU time at one place: what is predicted to take seconds may
/// take minutes on a host that swaps.
constexpr std::chrono::minutes shortest_spin{10};

std::int64_t whole_seconds(RollCall::Span span) {
  return std::chrono::round<std::chrono::seconds>(span).count();
}

}  // namespace

RollCall::RollCall(int ranks, Span beat, Span silence, Time now)
    : beat_{beat}, silence_{silence}, last_look_{now}, seen_(static_cast<std::size_t>(ranks)) {}

void RollCall::look(Time now) {
  const Span since = now - last_look_;
  last_look_ = now;
  awake_ += std::clamp(since, Span{}, 2 * beat_);
}

void RollCall::hear(int rank, const Beat& beat) {
  RankState& seen = seen_.at(static_cast<std::size_t>(rank));
  if (seen.heard && beat.number == seen.beat.number) return;
  const Span between = awake_ - seen.beat_at;
  const Span worked = beat.worked - seen.beat.worked;
  const bool moved = !seen.heard || beat.place != seen.beat.place;
  if (moved) {
    seen.moved_at = awake_;
    seen.warned_busy = false;
  }
  if (moved || worked * least_share_of_work > between) {
    seen.place_at = awake_;
    seen.warned = false;
  }
  seen.beat = beat;
  seen.beat_at = awake_;
  seen.heard = true;
}

std::optional<std::string> RollCall::lost() const {
  for (const RankState& each : seen_) {
    const Span quiet = awake_ - each.beat_at;
    if (!each.heard || quiet <= silence_) continue;
    return fmt::format("rank {} has been silent for {} s", &each - seen_.data(),
                       whole_seconds(quiet));
  }
  return std::nullopt;
}

/// Where every rank waits for another: the one that has waited longest, once all of them have
/// waited longer than the largest limit.
const RollCall::RankState* RollCall::longest_waiter() const {
  Span limit{};
  const RankState* first = nullptr;
  for (const RankState& each : seen_) {
    if (!each.heard || !waits(each)) return nullptr;
    limit = std::max<Span>(limit, each.beat.limit);
    if (first == nullptr || each.place_at < first->place_at) first = &each;
  }
  for (const RankState& each : seen_) {
    if (still(each) <= limit) return nullptr;
  }
  return first;
}

/// A rank's limit. A silent rank cannot report that its limit has become shorter, so the others'
/// limits apply to it, too.
RollCall::Span RollCall::limit_of(const RankState& seen) const {
  Span limit = seen.beat.limit;
  if (!silent(seen)) return limit;
  for (const RankState& each : seen_) {
    if (each.heard) limit = std::min<Span>(limit, each.beat.limit);
  }
  return limit;
}

RollCall::Span RollCall::busy_limit_of(const RankState& seen) const {
  return std::max<Span>(shortest_spin, limit_of(seen));
}

/// The rank that has used CPU time at one place for longest, beyond what any instruction takes.
const RollCall::RankState* RollCall::spinner() const {
  const RankState* worst = nullptr;
  for (const RankState& each : seen_) {
    if (!each.heard || waits(each) || busy(each) <= busy_limit_of(each)) continue;
    if (worst == nullptr || each.moved_at < worst->moved_at) worst = &each;
  }
  return worst;
}

std::optional<std::string> RollCall::stuck() const {
  const RankState* worst = nullptr;
  for (const RankState& each : seen_) {
    if (!each.heard || waits(each) || still(each) <= limit_of(each)) continue;
    const bool worse = worst == nullptr || (silent(each) && !silent(*worst)) ||
                       (silent(each) == silent(*worst) && each.place_at < worst->place_at);
    if (worse) worst = &each;
  }
  if (worst == nullptr) {
    if (const RankState* each = spinner()) {
      return fmt::format("rank {} is stuck: busy at one place for {} s: {}", each - seen_.data(),
                         whole_seconds(busy(*each)), each->beat.text);
    }
    worst = longest_waiter();
  }
  if (worst == nullptr) return std::nullopt;
  return fmt::format("rank {} is stuck: no progress for {} s: {}", worst - seen_.data(),
                     whole_seconds(still(*worst)), worst->beat.text);
}

std::vector<std::string> RollCall::warnings() {
  std::vector<std::string> all;
  for (RankState& each : seen_) {
    if (!each.heard || waits(each)) continue;
    if (!each.warned_busy && 2 * busy(each) > busy_limit_of(each)) {
      each.warned_busy = true;
      all.push_back(fmt::format("rank {} has been busy at one place for {} s (limit {} s): {}",
                                &each - seen_.data(), whole_seconds(busy(each)),
                                whole_seconds(busy_limit_of(each)), each.beat.text));
    }
    if (each.warned || 2 * still(each) <= each.beat.limit) continue;
    each.warned = true;
    all.push_back(fmt::format("rank {} has made no progress for {} s (limit {} s): {}",
                              &each - seen_.data(), whole_seconds(still(each)),
                              whole_seconds(each.beat.limit), each.beat.text));
  }
  return all;
}

}  // namespace orrery::executor
