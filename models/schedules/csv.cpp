#include "models/schedules/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::models {

namespace {

constexpr std::size_t largest_table = std::size_t{64} << 20;
constexpr std::int64_t most_chunks = std::int64_t{1} << 16;
constexpr std::int64_t most_of_step = std::int64_t{1} << 16;  // micro-batches of a step
constexpr std::size_t most_ranks = std::size_t{1} << 16;

/// The letters of a cell.
enum class CellKind : std::uint8_t { forward, whole_backward, input_gradient, weight_gradient };
constexpr Words<CellKind, 4> cell_letters{{{CellKind::forward, "F"},
                                           {CellKind::whole_backward, "B"},
                                           {CellKind::input_gradient, "I"},
                                           {CellKind::weight_gradient, "W"}}};

struct Cell {
  CellKind kind = CellKind::forward;
  std::int64_t chunk = 0, micro_batch = 0;
  std::size_t line = 0;
  std::string text;
};

/// Takes the number at the beginning of `text` off it, if there is one and it is below `most`.
std::optional<std::int64_t> take_number(std::string_view& text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end == text.data() || value < 0 || value >= most) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

class ScheduleParser {
 public:
  explicit ScheduleParser(std::string name) : name_{std::move(name)} {}

  ScheduleTable run(std::string_view text) {
    require_text(text, name_);
    for (const std::string_view each : split(text, '\n')) line(each);
    if (ranks_.empty())
      throw InputError{name_, "expected a line of slots for each rank, found none"};
    split_ = any(CellKind::input_gradient) || any(CellKind::weight_gradient);
    ScheduleTable table;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) table.slots.push_back(slots_of(rank));
    table.chunks = chunks_;
    table.micro_batches = micro_batches_;
    require_all();
    require_progress(table);
    return table;
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& problem) const {
    throw InputError{fmt::format("{}:line {}", name_, line), problem};
  }

  void line(std::string_view text) {
    ++line_;
    if (trimmed(text).empty()) return;
    if (ranks_.size() == most_ranks) fail(line_, fmt::format("more than {} ranks", most_ranks));
    ranks_.emplace_back();
    for (const std::string_view each : split(text, ',')) cell(trimmed(each));
  }

  /// One slot, or an overlapped pair, "(0F1;3B0)OVERLAP_F_B", whose slots become consecutive here.
  void cell(std::string_view text) {
    constexpr std::string_view overlap = ")OVERLAP_F_B";
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = trimmed(text.substr(1, text.size() - 2));
    }
    if (text.empty()) return;
    if (text.front() == '(' && text.size() > overlap.size() &&
        text.substr(text.size() - overlap.size()) == overlap) {
      std::string_view both = text.substr(1, text.size() - overlap.size() - 1);
      const std::size_t middle = std::min(both.find(';'), both.size());
      slot(trimmed(both.substr(0, middle)));
      if (middle < both.size()) slot(trimmed(both.substr(middle + 1)));
      return;
    }
    slot(text);
  }

  void slot(std::string_view text) {
    std::string_view rest = text;
    const auto chunk = take_number(rest, most_chunks);
    const auto kind = rest.empty() ? std::nullopt : value_of(cell_letters, rest.substr(0, 1));
    if (!rest.empty()) rest.remove_prefix(1);
    const auto micro_batch = take_number(rest, most_of_step);
    if (!chunk || !kind || !micro_batch || !rest.empty()) {
      fail(line_, fmt::format("expected a chunk, one of F B I W and a micro-batch, as in 0F3, "
                              "found \"{}\"; leave transfers and gathers out",
                              printable(text, 40)));
    }
    ranks_.back().push_back({*kind, *chunk, *micro_batch, line_, std::string{text}});
    chunks_ = std::max(chunks_, *chunk + 1);
    micro_batches_ = std::max(micro_batches_, *micro_batch + 1);
    const auto [home, fresh] = home_.try_emplace(*chunk, line_);
    if (!fresh && home->second != line_) {
      fail(line_, fmt::format("chunk {} is on line {}, too; a chunk must be on one rank", *chunk,
                              home->second));
    }
  }

  bool any(CellKind kind) const {
    return std::ranges::any_of(ranks_, [&](const std::vector<Cell>& cells) {
      return std::ranges::any_of(cells, [&](const Cell& each) { return each.kind == kind; });
    });
  }

  Slots slots_of(std::size_t rank) {
    Slots slots;
    for (const Cell& each : ranks_[rank]) {
      if (each.kind == CellKind::forward) add(each, SlotKind::forward, slots);
      const bool whole = each.kind == CellKind::whole_backward;
      if (whole || each.kind == CellKind::input_gradient) add(each, SlotKind::backward, slots);
      const bool last = each.kind == CellKind::weight_gradient || (whole && split_);
      if (last) add(each, SlotKind::weight_gradient, slots);
    }
    return slots;
  }

  /// Adds a slot; each chunk and micro-batch has forward, backward and weight gradient in that
  /// order, once each.
  void add(const Cell& cell, SlotKind kind, Slots& slots) {
    int& done = done_[{cell.chunk, cell.micro_batch}];
    const int place = static_cast<int>(kind);
    if (done > place) fail(cell.line, fmt::format("{} is given twice", cell.text));
    if (done < place) {
      fail(cell.line, fmt::format("{} comes before the {} of its chunk and micro-batch", cell.text,
                                  word_of(slot_words, static_cast<SlotKind>(done))));
    }
    ++done;
    slots.push_back({.kind = kind,
                     .chunk = static_cast<std::uint16_t>(cell.chunk),
                     .micro_batch = static_cast<std::uint32_t>(cell.micro_batch)});
  }

  void require_all() const {
    const int kinds = split_ ? 3 : 2;
    for (std::int64_t chunk = 0; chunk < chunks_; ++chunk) {
      const auto home = home_.find(chunk);
      if (home == home_.end()) {
        throw InputError{name_, fmt::format("chunk {} is missing: there are slots of chunk {}",
                                            chunk, chunks_ - 1)};
      }
      for (std::int64_t mb = 0; mb < micro_batches_; ++mb) {
        const auto found = done_.find({chunk, mb});
        const int done = found == done_.end() ? 0 : found->second;
        if (done == kinds) continue;
        fail(home->second,
             fmt::format("the {} of chunk {} and micro-batch {} is missing",
                         word_of(slot_words, static_cast<SlotKind>(done)), chunk, mb));
      }
    }
  }

  void require_progress(const ScheduleTable& table) const {
    const PipelineShape shape{.stages = table.chunks, .micro_batches = table.micro_batches};
    if (std::isfinite(duration_of(table.slots, shape))) return;
    throw InputError{name_, "deadlock: ranks wait for each other's slots"};
  }

  std::string name_;
  std::vector<std::vector<Cell>> ranks_;
  std::map<std::int64_t, std::size_t> home_;                   // line by chunk
  std::map<std::pair<std::int64_t, std::int64_t>, int> done_;  // slots by chunk and micro-batch
  std::size_t line_ = 0;
  std::int64_t chunks_ = 0, micro_batches_ = 0;
  bool split_ = false;
};

}  // namespace

bool ScheduleTable::splits_backward() const {
  return models::splits_backward(slots);
}

std::vector<std::int64_t> ScheduleTable::stages() const {
  std::vector<std::int64_t> found(static_cast<std::size_t>(chunks), 0);
  for (std::size_t stage = 0; stage < slots.size(); ++stage) {
    for (const ScheduleSlot& each : slots[stage]) {
      found[each.chunk] = static_cast<std::int64_t>(stage);
    }
  }
  return found;
}

ScheduleTable load_schedule(const std::string& path) {
  return parse_schedule(read_file(path, largest_table), path);
}

ScheduleTable parse_schedule(std::string_view text, const std::string& name) {
  return ScheduleParser{name}.run(text);
}

std::string to_csv(const std::vector<Slots>& slots) {
  const bool split = splits_backward(slots);
  std::string text;
  for (const Slots& rank : slots) {
    std::string_view separator;
    for (const ScheduleSlot& each : rank) {
      const CellKind kind = each.kind == SlotKind::forward           ? CellKind::forward
                            : each.kind == SlotKind::weight_gradient ? CellKind::weight_gradient
                            : split                                  ? CellKind::input_gradient
                                                                     : CellKind::whole_backward;
      text += fmt::format("{}{}{}{}", separator, each.chunk, word_of(cell_letters, kind),
                          each.micro_batch);
      separator = ",";
    }
    text += '\n';
  }
  return text;
}

}  // namespace orrery::models
