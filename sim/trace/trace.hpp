#pragma once
// A timeline of work per queue. Simulated and measured runs produce the same type, so that the two
// can be joined by operation. It does not check that the work of a queue does not overlap, and does
// not know what an operation is.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/quantity.hpp"

namespace orrery {

/// Tracks are numbered from 0 in the order added.
enum class Track : std::uint32_t {};

constexpr std::size_t index(Track track) {
  return static_cast<std::size_t>(track);
}

/// One piece of work. Counts that do not apply are 0.
struct TraceRecord {
  Track track{};
  Time start{};
  Time duration{};
  std::string name{};  // for people: "layer.3/attention"
  std::string id{};    // the operation's path, the key by which two traces are joined
  std::string kind{};  // its class: "gemm", "tp", "host"
  Flops flops{};
  Bytes bytes{};
};

class Trace {
 public:
  /// The queue `thread` of `process` (a rank, or a class of ranks); the same two names give the
  /// same track again.
  Track add_track(std::string_view process, std::string_view thread);

  /// Errors  unknown track, start or duration below 0: ContractError
  void add(TraceRecord record);

  struct Queue {
    std::size_t process;  // into `processes`
    std::size_t thread;   // among the queues of its process, from 0
    std::string name;
  };
  /// Sets a figure of the whole trace, such as peak memory; a later value replaces an earlier one.
  void note(std::string_view key, std::int64_t figure) { notes_[std::string{key}] = figure; }
  const std::map<std::string, std::int64_t>& notes() const { return notes_; }

  const std::vector<std::string>& processes() const { return processes_; }
  const std::vector<Queue>& tracks() const { return tracks_; }
  const std::vector<TraceRecord>& records() const { return records_; }

 private:
  struct Process {
    std::size_t number = 0;
    std::unordered_map<std::string, Track> threads;
  };

  std::vector<std::string> processes_;  // in the order added
  std::vector<Queue> tracks_;
  std::vector<TraceRecord> records_;
  std::unordered_map<std::string, Process> process_of_;
  std::map<std::string, std::int64_t> notes_;
};

}  // namespace orrery
