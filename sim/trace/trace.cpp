#include "sim/trace/trace.hpp"

#include <utility>

#include "sim/errors.hpp"

namespace orrery {

Track Trace::add_track(std::string_view process, std::string_view thread) {
  const auto [owner, new_process] = process_of_.try_emplace(std::string{process});
  if (new_process) {
    owner->second.number = processes_.size();
    processes_.emplace_back(process);
  }
  auto& threads = owner->second.threads;
  const auto [track, new_track] =
      threads.try_emplace(std::string{thread}, Track{static_cast<std::uint32_t>(tracks_.size())});
  if (new_track) {
    tracks_.push_back({owner->second.number, threads.size() - 1, std::string{thread}});
  }
  return track->second;
}

void Trace::add(TraceRecord record) {
  ensure(index(record.track) < tracks_.size(), "a record names a track that the trace has not");
  ensure(record.start >= Time{} && record.duration >= Time{},
         "a record starts at 0 ps or later and lasts no less than 0 ps");
  records_.push_back(std::move(record));
}

}  // namespace orrery
