#include "executor/launch/vital_signs.hpp"

#include <algorithm>

#include "executor/launch/frame.hpp"

namespace orrery::executor {

namespace {

/// The longest time that is accepted: 35 years.
constexpr std::uint64_t most_milliseconds = std::uint64_t{1} << 40;

std::uint64_t number_of(std::chrono::milliseconds span) {
  return static_cast<std::uint64_t>(std::max(span.count(), std::int64_t{0}));
}

std::chrono::milliseconds span_from(FrameReader& reader) {
  return std::chrono::milliseconds{std::min(reader.number(8), most_milliseconds)};
}

/// Is it an exit code that ends a run?
bool ends_runs(std::uint64_t code) {
  const Exit known = static_cast<Exit>(static_cast<int>(code));
  return code < 256 && known != Exit::done && meaning(known) != "unknown";
}

}  // namespace

std::string text_of(const Verdict& verdict) {
  return FrameWriter{}
      .number(static_cast<std::uint64_t>(verdict.code), 4)
      .number(static_cast<std::uint64_t>(verdict.teller), 4)
      .text(verdict.why)
      .bytes();
}

std::optional<Verdict> parse_verdict(std::string_view text, int ranks) {
  FrameReader reader{text};
  const std::uint64_t code = reader.number(4), teller = reader.number(4);
  std::string why = reader.text();
  if (!reader.at_end() || !ends_runs(code)) return std::nullopt;
  if (teller >= static_cast<std::uint64_t>(ranks)) return std::nullopt;
  return Verdict{static_cast<Exit>(static_cast<int>(code)), static_cast<int>(teller),
                 std::move(why)};
}

Verdict unreadable_verdict() {
  return {Exit::peer_failed, 0, "a rank ended the run with a reason that cannot be read"};
}

std::string text_of(const Beat& beat) {
  return FrameWriter{}
      .number(beat.number, 8)
      .text(beat.place)
      .text(beat.waits)
      .text(beat.text)
      .number(number_of(beat.limit), 8)
      .number(number_of(beat.worked), 8)
      .bytes();
}

std::optional<Beat> parse_beat(std::string_view text) {
  FrameReader reader{text};
  Beat beat;
  beat.number = reader.number(8);
  beat.place = reader.text();
  beat.waits = reader.text();
  beat.text = reader.text();
  beat.limit = span_from(reader);
  beat.worked = span_from(reader);
  if (!reader.at_end()) return std::nullopt;
  return beat;
}

}  // namespace orrery::executor
