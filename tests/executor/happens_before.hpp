#pragma once
// Which work on queues has ended before which, from nothing but the order in which it was enqueued
// and the waits between queues: a vector clock for each lane (a queue, or the host). Two touches of
// one byte, one of them a write, that neither way are in order are a missing wait, whether or not
// this run's delays brought it to light.
// Source  Fidge 1988 and Mattern 1989, vector clocks; Flanagan & Freund 2009, "FastTrack"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

namespace orrery::executor {

class HappensBefore {
 public:
  static constexpr std::size_t most_lanes = 24;
  static constexpr std::size_t host = 0;
  using Clock = std::array<std::uint64_t, most_lanes>;  // work of each lane that has ended by then

  /// Something is enqueued on a lane: after all that is there, and all that the host has seen.
  void begin(std::size_t lane);
  /// ... which touches memory. `name` outlives the order.
  /// Errors  std::logic_error `lane 1 'adam' writes what lane 3 'all_reduce' may still read`
  void touch(std::size_t lane, std::string_view name, const std::byte* memory, std::int64_t bytes,
             bool writes);

  /// What has ended when a lane has come as far as it is filled now.
  Clock now(std::size_t lane) const { return clocks_[lane]; }
  /// A lane goes on no earlier than that.
  void join(std::size_t lane, const Clock& ended);
  /// Touches that everything from now on comes after are forgotten.
  void forget_ended();

 private:
  struct Touch {
    std::uint64_t time = 0;  // on its lane; 0: never
    std::string_view name{};
  };
  /// Bytes that were touched alike.
  struct Cell {
    std::uintptr_t end = 0;
    std::size_t writer = host;
    Touch written{};
    std::array<Touch, most_lanes> read{};  // since it was written
  };
  using Cells = std::map<std::uintptr_t, Cell>;

  Cells::iterator cut(std::uintptr_t at);
  void touch(Cell& cell, std::size_t lane, std::string_view name, bool writes);
  bool ended(const Cell& cell) const;

  std::array<Clock, most_lanes> clocks_{};
  Cells cells_;
};

}  // namespace orrery::executor
