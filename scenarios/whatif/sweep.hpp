#pragma once
// A million what-ifs: every combination of listed values, each answered as `simulate` answers it, a
// line of JSON each as they come. A variant that is impossible has its reason on its line.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/search/workers.hpp"
#include "scenarios/whatif/sweep_store.hpp"

namespace orrery::scenarios {

/// More are refused unless the request allows them.
inline constexpr std::uint64_t usual_most_variants = 10'000'000;

/// The list that `POINTER=A,B,C` states: one value or more.
/// Errors  as parse_change, at --vary
ValueList parse_varied(std::string_view text);

/// Errors  a pointer that is listed twice or that the scenario has no value for, more variants than
///         `most`: InputError
SweepQuestions sweep_questions(Scenario base, std::vector<ValueList> lists,
                               const WhatIfRequest& request,
                               std::uint64_t most = usual_most_variants);

/// Lines of the variants [begin, end), in order, each with its end: the same bytes for any number
/// of threads. At most some hundred wait for one that takes longer.
/// put      gets one or more whole lines at a time, and how many, never by two threads at once
/// Returns  whether all were made; they are not if `workers.progress` asked to stop
bool sweep_lines(SweepAnswers& answers, const SweepGrid& grid, std::uint64_t begin,
                 std::uint64_t end, const Workers& workers,
                 const std::function<void(std::string_view lines, std::uint64_t count)>& put);

/// What a store's lines amount to.
class SweepTotals {
 public:
  void add(std::string_view line);

  std::uint64_t rows = 0, refused = 0, fits = 0, our_faults = 0;
  std::uint64_t doubtful = 0;  // of those that fit: predicted above the memory, but not ruled out
  std::string fastest, cheapest;  // lines: by tokens per second and per dollar, of what fits
                                  // as predicted, if there is any
  std::string first_refused;      // the line of the first impossible variant

 private:
  double most_tokens_ = 0, least_cost_ = 0;
};

struct SweepRequest {
  std::string store;
  SweepShard shard;
  unsigned threads = 0;
};

struct SweepReport {
  std::string scenario, store;
  SweepShard shard;
  std::uint64_t variants = 0;  // of the shard
  std::uint64_t before = 0;    // that were in the store already
  SweepTotals totals;
  bool stopped = false;
};

/// Answers what the store lacks, and appends it.
/// Errors  as SweepStore; a store whose last variant is predicted otherwise by this build
SweepReport sweep(const SweepQuestions& questions, const SweepRequest& request,
                  const Progress& progress);

/// `{store, scenario, shard, variants, rows, rows_before, refused, fits, doubtful, fastest,
/// cheapest, complete}`; the best ones are rows of the store, or null.
Json to_json(const SweepReport& report);
std::string text_of(const SweepReport& report, bool colour);

}  // namespace orrery::scenarios
