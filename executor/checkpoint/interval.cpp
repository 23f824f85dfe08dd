#include "executor/checkpoint/interval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::minutes by_default{10};
constexpr int one_part_in = 50;  // of the run's time

}  // namespace

CheckpointEvery parse_checkpoint_every(const std::string& text) {
  std::int64_t steps = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, steps);
  if (error == std::errc{} && rest == end && steps >= 0) return {.steps = steps};
  constexpr std::int64_t picoseconds_per_millisecond = 1'000'000'000;
  if (const auto time = parse_quantity<Time>(text); time && time->count() > 0) {
    const std::int64_t count = time->count() / picoseconds_per_millisecond;
    return {.time = std::chrono::milliseconds{std::max<std::int64_t>(1, count)}};
  }
  throw InputError{
      "--checkpoint-every",
      fmt::format("expected a number of steps or a time such as \"10 min\", found '{}'", text)};
}

bool CheckpointInterval::due(std::int64_t done, Time now) const {
  if (every_.steps) return *every_.steps > 0 && done % *every_.steps == 0;
  const auto least = std::max<Time::duration>(by_default, one_part_in * cost_);
  return now - last_ >= (every_.time ? Time::duration{*every_.time} : least);
}

void CheckpointInterval::saved(Time begin, Time end) {
  cost_ = end - begin;
  last_ = end;
}

}  // namespace orrery::executor
