#include "scenarios/comparison/joined.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

namespace orrery::scenarios {

namespace {

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return std::nullopt;
  return value;
}

/// "rank 5 (stage 2)": 2.
std::int64_t stage_in(std::string_view process) {
  constexpr std::string_view word = "(stage ";
  const std::size_t at = process.find(word);
  if (at == std::string_view::npos) return 0;
  return leading_number(process.substr(at + word.size())).value_or(0);
}

/// "12/layer.forward.3/qkv" names a block "layer.forward" and an operation "qkv".
void name_operation(JoinedRecord& each) {
  std::string_view rest = each.path;
  if (each.launch) rest.remove_suffix(std::string_view{"/host"}.size());
  const std::size_t first = rest.find('/');
  if (first == std::string_view::npos) {
    each.operation = each.record->name.substr(0, each.record->name.find(" chunk"));
    return;
  }
  const std::size_t second = rest.find('/', first + 1);
  if (second == std::string_view::npos) return;
  std::string_view block = rest.substr(first + 1, second - first - 1);
  const std::size_t dot = block.rfind('.');
  if (dot != std::string_view::npos && leading_number(block.substr(dot + 1)))
    block = block.substr(0, dot);
  each.block = block;
  each.operation = rest.substr(second + 1);
}

bool is_collective(std::string_view kind) {
  static constexpr std::string_view kinds[] = {
      "tp", "dp", "ep", "other_comm", "reduce_gradient", "tie", "norm", "gather", "unshard"};
  return std::ranges::find(kinds, kind) != std::end(kinds);
}

Time end_of(const JoinedRecord& each) {
  return each.start + each.duration;
}

/// Moves the start of `each` to `start`, within its duration; returns the time taken off.
Time begin_at(JoinedRecord& each, Time start) {
  start = std::clamp(start, each.start, end_of(each));
  const Time waited = start - each.start;
  each.duration = end_of(each) - start;
  each.start = start;
  return waited;
}

Time shorten_collectives(std::vector<JoinedRecord>& records) {
  std::map<std::pair<std::int64_t, std::string_view>, Time> shortest;
  for (const JoinedRecord& each : records) {
    if (each.launch || !is_collective(each.record->kind)) continue;
    const auto [known, fresh] = shortest.try_emplace({each.stage, each.path}, each.duration);
    if (!fresh) known->second = std::min(known->second, each.duration);
  }
  Time waited{};
  for (JoinedRecord& each : records) {
    if (each.launch || !is_collective(each.record->kind)) continue;
    waited += begin_at(each, end_of(each) - shortest.at({each.stage, each.path}));
  }
  return waited;
}

/// The sends to one rank from one pipeline neighbour and its receives of them, each in order of
/// time.
struct Transfers {
  std::vector<std::size_t> sends, receives;
};

/// Ranks per stage: the distance in rank between neighbours in the pipeline.
std::int64_t replicas_of(const std::vector<JoinedRecord>& records) {
  std::map<std::int64_t, std::int64_t> stage_of;
  for (const JoinedRecord& each : records) stage_of[each.rank] = each.stage;
  return std::ranges::count_if(stage_of, [](const auto& entry) { return entry.second == 0; });
}

std::map<std::pair<std::int64_t, bool>, Transfers> meetings_in(
    const std::vector<JoinedRecord>& records) {
  std::int64_t stages = 1;
  for (const JoinedRecord& each : records) stages = std::max(stages, each.stage + 1);
  const std::int64_t step = replicas_of(records), ranks = step * stages;
  std::map<std::pair<std::int64_t, bool>, Transfers> meetings;  // by receiver and `upwards`
  for (std::size_t i = 0; i < records.size(); ++i) {
    const JoinedRecord& each = records[i];
    const bool sends = each.record->kind == "send", receives = each.record->kind == "receive";
    if (each.launch || ranks == 0 || (!sends && !receives)) continue;
    const std::int64_t towards = each.upwards ? ranks - step : step;
    const std::int64_t receiver = sends ? (each.rank + towards) % ranks : each.rank;
    Transfers& meeting = meetings[{receiver, each.upwards}];
    (sends ? meeting.sends : meeting.receives).push_back(i);
  }
  return meetings;
}

Time shorten_receives(std::vector<JoinedRecord>& records) {
  Time waited{};
  for (const auto& [receiver, each] : meetings_in(records)) {
    const std::size_t pairs = std::min(each.sends.size(), each.receives.size());
    for (std::size_t k = 0; k < pairs; ++k) {
      waited += begin_at(records[each.receives[k]], records[each.sends[k]].record->start);
    }
  }
  return waited;
}

}  // namespace

std::vector<JoinedRecord> records_of(const Trace& trace) {
  std::vector<JoinedRecord> records;
  records.reserve(trace.records().size());
  for (const TraceRecord& record : trace.records()) {
    const std::string_view id = record.id;
    const std::size_t slash = id.find('/');
    const auto rank = leading_number(id.substr(0, slash));
    if (!rank || slash == std::string_view::npos) continue;
    JoinedRecord each;
    each.record = &record;
    each.rank = *rank;
    each.stage = stage_in(trace.processes()[trace.tracks()[index(record.track)].process]);
    each.path = id.substr(slash + 1);
    each.launch = record.kind == "host" && id.size() > 5 && id.substr(id.size() - 5) == "/host";
    each.upwards = trace.tracks()[index(record.track)].name == "comm:pp back";
    each.start = record.start;
    each.duration = record.duration;
    name_operation(each);
    records.push_back(std::move(each));
  }
  return records;
}

Time take_out_waiting(std::vector<JoinedRecord>& records) {
  return shorten_collectives(records) + shorten_receives(records);
}

}  // namespace orrery::scenarios
