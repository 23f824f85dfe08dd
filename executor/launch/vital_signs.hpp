#pragma once
// What watchdogs write to each other in the store, and its parsing: a rank's heartbeat, and why the
// run ends. Bytes of another process are not trusted: what cannot be parsed is nullopt.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "executor/errors.hpp"

namespace orrery::executor {

/// Why the run ends: the first failure of all.
struct Verdict {
  Exit code = Exit::done;
  int teller = 0;  // the rank that reports it to the user
  std::string why{};
};

std::string text_of(const Verdict& verdict);
/// nullopt: incomplete, of a rank that does not exist, or with a code that ends no run (`done`).
std::optional<Verdict> parse_verdict(std::string_view text, int ranks);
/// The verdict on a run whose written verdict cannot be parsed.
Verdict unreadable_verdict();

/// A heartbeat: the rank is alive, and where it is.
struct Beat {
  std::uint64_t number = 0;
  std::string place{};                      // differs: the rank has moved
  std::string waits{};                      // for which rank; empty: for none
  std::string text{};                       // all of this in words
  std::chrono::milliseconds limit{60'000};  // how long it may stay at one place
  std::chrono::milliseconds worked{};       // CPU time that its own work has taken
};

std::string text_of(const Beat& beat);
std::optional<Beat> parse_beat(std::string_view text);

}  // namespace orrery::executor
