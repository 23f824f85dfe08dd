#include "scenarios/whatif/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

std::string grouped_digits(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

/// Why the scenario takes none of a list's values, after some changes; nothing: it takes one.
std::optional<InputError> refusal_of_list(const Scenario& base, const ValueList& list,
                                          std::vector<std::pair<std::string, Json>> changes) {
  std::optional<InputError> refused;
  changes.emplace_back();
  for (const Json& value : list.values) {
    changes.back() = {list.pointer, value};
    try {
      base.with_values(changes);
      return std::nullopt;
    } catch (const InputError& error) {
      if (!refused) refused = error;
    }
  }
  return refused;
}

/// Refuses a list of which the scenario takes no value, as one of a pointer that leads nowhere: all
/// variants would be errors.
void require_places(const Scenario& base, const std::vector<ValueList>& lists) {
  std::vector<std::pair<std::string, Json>> before;
  for (const ValueList& list : lists) {
    const auto refused = refusal_of_list(base, list, before);
    if (refused && refusal_of_list(base, list, {})) {
      const std::string line = refused->what(), place = fmt::format("--set {}: ", list.pointer);
      throw InputError{fmt::format("--vary {}", list.pointer),
                       line.starts_with(place) ? line.substr(place.size()) : line};
    }
    if (!refused) before.emplace_back(list.pointer, list.values.front());
  }
}

}  // namespace

ValueList parse_varied(std::string_view text) {
  if (auto list = value_list(text)) return *std::move(list);
  try {
    auto [pointer, value] = parse_change(text);
    return {.pointer = std::move(pointer), .values = {std::move(value)}};
  } catch (const InputError& error) {
    if (text.find('=') != std::string_view::npos && text.starts_with('/')) throw;
    throw InputError{"--vary", fmt::format("expected POINTER=A,B,C such as /plan/tensor=2,4,8, "
                                           "found '{}'",
                                           text.substr(0, 60))};
  }
}

SweepQuestions sweep_questions(Scenario base, std::vector<ValueList> lists,
                               const WhatIfRequest& request, std::uint64_t most) {
  std::set<std::string> known;
  for (const ValueList& list : lists) {
    if (!known.insert(list.pointer).second) {
      throw InputError{"--vary", fmt::format("{} is listed twice", list.pointer)};
    }
  }
  SweepGrid grid{std::move(lists)};
  if (grid.variants() > most) {
    throw InputError{"--vary", fmt::format("the lists have {} combinations, more than {}; list "
                                           "fewer values, or allow them with --limit {}",
                                           grouped_digits(grid.variants()), grouped_digits(most),
                                           grid.variants())};
  }
  require_places(base, grid.lists());
  return {.base = std::move(base), .grid = std::move(grid), .request = request};
}

namespace {

/// Lines that are made in any order and put in that of the variants.
class LinesInOrder {
 public:
  using Put = std::function<void(std::string_view, std::uint64_t)>;
  LinesInOrder(std::uint64_t next, std::uint64_t most_ahead, const Put& put)
      : next_{next}, most_ahead_{most_ahead}, put_{put} {}

  /// Returns when a variant is no further ahead than lines may wait; false: the sweep has ended.
  bool may_begin(std::uint64_t index) {
    std::unique_lock lock{mutex_};
    moved_.wait(lock, [&] { return ended_ || index < next_ + most_ahead_; });
    return !ended_;
  }
  void add(std::uint64_t index, std::string line) {
    std::unique_lock lock{mutex_};
    waiting_.emplace(index, std::move(line));
    if (putting_ || ended_) return;
    putting_ = true;
    try {
      while (!ended_ && !waiting_.empty() && waiting_.begin()->first == next_) put_ready(lock);
    } catch (...) {
      ended_ = true;
      moved_.notify_all();
      throw;
    }
    putting_ = false;
  }
  void end() {
    const std::lock_guard lock{mutex_};
    ended_ = true;
    moved_.notify_all();
  }

 private:
  /// Puts all lines that are next, while others may add theirs.
  void put_ready(std::unique_lock<std::mutex>& lock) {
    std::string lines;
    std::uint64_t count = 0;
    while (!waiting_.empty() && waiting_.begin()->first == next_ + count) {
      lines += waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      ++count;
    }
    lock.unlock();
    try {
      put_(lines, count);
    } catch (...) {
      lock.lock();
      throw;
    }
    lock.lock();
    next_ += count;
    moved_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::uint64_t, std::string> waiting_;
  std::uint64_t next_, most_ahead_;
  const Put& put_;
  bool putting_ = false, ended_ = false;
};

}  // namespace

bool sweep_lines(SweepAnswers& answers, const SweepGrid& grid, std::uint64_t begin,
                 std::uint64_t end, const Workers& workers,
                 const std::function<void(std::string_view, std::uint64_t)>& put) {
  const std::uint64_t most_ahead = 256 + 16 * std::uint64_t{workers.size()};
  LinesInOrder ordered{begin, most_ahead, put};
  const Workers watched{.threads = workers.threads,
                        .progress = [&](std::size_t done, std::size_t all) {
                          const bool go_on = !workers.progress || workers.progress(done, all);
                          if (!go_on) ordered.end();
                          return go_on;
                        }};
  return watched.work_through(end - begin, [&](std::size_t piece, unsigned) {
    const std::uint64_t index = begin + piece;
    if (!ordered.may_begin(index)) return;
    try {
      ordered.add(index, grid.line(index, answers.row(index)) + "\n");
    } catch (...) {
      ordered.end();
      throw;
    }
  });
}

void SweepTotals::add(std::string_view line) {
  ++rows;
  if (!is_predicted(line)) {
    if (refused++ == 0) first_refused = line;
    if (is_our_fault(line)) ++our_faults;
    return;
  }
  if (!fits_in(line)) return;
  ++fits;
  const bool doubted = line.find(R"("fit":"doubtful")") != std::string_view::npos;
  if (doubted) ++doubtful;
  if (doubted && doubtful < fits) return;  // one that fits as predicted was found
  if (!doubted && doubtful + 1 == fits) fastest = cheapest = {};
  const double tokens = figure_in(line, "tokens_per_s").value_or(0);
  if (fastest.empty() || tokens > most_tokens_) {
    most_tokens_ = tokens;
    fastest = line;
  }
  const auto cost = figure_in(line, "cost_usd_per_step");
  const auto step = figure_in(line, "step_time_s");
  if (!cost || !step || tokens <= 0) return;
  const double of_token = *cost / *step / tokens;
  if (cheapest.empty() || of_token < least_cost_) {
    least_cost_ = of_token;
    cheapest = line;
  }
}

namespace {

/// Refuses to continue a store whose last line this build would not write.
void require_same_build(const SweepQuestions& questions, const std::string& store,
                        std::uint64_t index, const std::string& last) {
  const std::string now = questions.grid.line(index, SweepAnswers::row_alone(questions, index));
  if (now == last) return;
  throw InputError{store, fmt::format("this build predicts variant {} otherwise than the one that "
                                      "began the file; state another --store, or remove it",
                                      index)};
}

}  // namespace

SweepReport sweep(const SweepQuestions& questions, const SweepRequest& request,
                  const Progress& progress) {
  const std::uint64_t variants = questions.grid.variants();
  const std::uint64_t begin = request.shard.begin(variants), end = request.shard.end(variants);
  SweepReport report{.scenario = questions.base.name(),
                     .store = request.store,
                     .shard = request.shard,
                     .variants = end - begin,
                     .before = 0,
                     .totals = {}};
  std::string last;
  SweepStore store{request.store, store_header(questions, request.shard), begin, end,
                   [&](std::string_view line) {
                     report.totals.add(line);
                     last = line;
                   }};
  report.before = store.next() - begin;
  if (report.before > 0) require_same_build(questions, request.store, store.next() - 1, last);
  if (store.next() == end) return report;
  SweepAnswers answers{questions};
  const std::uint64_t before = report.before;
  const Workers workers{.threads = request.threads, .progress = [&](std::size_t done, std::size_t) {
                          return !progress || progress(before + done, end - begin);
                        }};
  const auto put = [&](std::string_view lines, std::uint64_t count) {
    store.append(lines, count);
    for (std::size_t at = 0; at < lines.size();) {
      const std::size_t length = lines.find('\n', at) - at;
      report.totals.add(lines.substr(at, length));
      at += length + 1;
    }
  };
  sweep_lines(answers, questions.grid, store.next(), end, workers, put);
  store.flush();
  report.stopped = store.next() < end;
  return report;
}

namespace {

Json json_of_shard(const SweepShard& shard) {
  if (shard.whole()) return nullptr;
  return {{"number", shard.number}, {"of", shard.of}};
}

Json json_of_line(const std::string& line) {
  return line.empty() ? Json(nullptr) : Json::parse(line);
}

std::string values_in_row(const Json& row) {
  std::string text;
  for (const auto& [pointer, value] : row["values"].items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : "  ", pointer,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

void add_best_row(const char* word, const std::string& line, std::string& text) {
  if (line.empty()) return;
  const Json row = Json::parse(line);
  const double step = row["step_time_s"].get<double>();
  text += fmt::format("  {:<9} {:.4g} s a step, {:.1f} % MFU", word, step,
                      100 * row["mfu"].get<double>());
  if (row["cost_usd_per_step"].is_number()) {
    text += fmt::format(", ${:.4g} a step", row["cost_usd_per_step"].get<double>());
  }
  if (row["days"].is_number()) text += fmt::format(", {:.4g} days", row["days"].get<double>());
  if (row["cost_usd"].is_number()) text += fmt::format(", ${:.4g}", row["cost_usd"].get<double>());
  text += fmt::format("\n            {}\n", values_in_row(row));
}

}  // namespace

Json to_json(const SweepReport& report) {
  return {{"store", report.store},
          {"scenario", report.scenario},
          {"shard", json_of_shard(report.shard)},
          {"variants", report.variants},
          {"rows", report.totals.rows},
          {"rows_before", report.before},
          {"refused", report.totals.refused},
          {"fits", report.totals.fits},
          {"doubtful", report.totals.doubtful},
          {"fastest", json_of_line(report.totals.fastest)},
          {"cheapest", json_of_line(report.totals.cheapest)},
          {"complete", !report.stopped}};
}

std::string text_of(const SweepReport& report, bool colour) {
  const SweepTotals& totals = report.totals;
  const std::string of_shard =
      report.shard.whole() ? ""
                           : fmt::format(", shard {}/{}", report.shard.number, report.shard.of);
  std::string text =
      toned(fmt::format("Sweep of {}{}", report.scenario, of_shard), Tone::bold, colour) + "\n\n";
  text += fmt::format("  {} of {} variants are in {}", grouped_digits(totals.rows),
                      grouped_digits(report.variants), report.store);
  if (report.before > 0) text += fmt::format(" ({} were before)", grouped_digits(report.before));
  const std::string doubtful =
      totals.doubtful > 0 ? fmt::format("{} may not, ", grouped_digits(totals.doubtful)) : "";
  text += fmt::format("\n  {} fit, {}{} do not, {} are impossible\n",
                      grouped_digits(totals.fits - totals.doubtful), doubtful,
                      grouped_digits(totals.rows - totals.refused - totals.fits),
                      grouped_digits(totals.refused));
  if (!totals.first_refused.empty()) {
    const Json first = Json::parse(totals.first_refused, nullptr, false);
    text += fmt::format("  the first of these: {}\n", printable(first.value("error", ""), 200));
  }
  add_best_row("fastest", totals.fastest, text);
  if (totals.cheapest != totals.fastest) add_best_row("cheapest", totals.cheapest, text);
  return text;
}

}  // namespace orrery::scenarios
