// orrery sweep: a file of what-ifs that grows and can be continued. orrery merge: shards of one.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/question_flags.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/whatif/sweep.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct SweepFlags {
  QuestionFlags question;
  std::vector<std::string> vary;
  std::string store;
  std::optional<std::string> shard, tokens, headroom;
  std::uint64_t limit = usual_most_variants;
  unsigned threads = 0;
  bool json = false;
};

SweepQuestions questions_of(const SweepFlags& flags) {
  std::vector<ValueList> lists;
  for (const std::string& each : flags.vary) lists.push_back(parse_varied(each));
  WhatIfRequest request;
  if (flags.headroom) request.headroom = read_headroom_flag(flags.headroom);
  if (flags.tokens) request.tokens = read_tokens_flag(*flags.tokens);
  return sweep_questions(flags.question.load(), std::move(lists), request, flags.limit);
}

int run_sweep(const SweepFlags& flags) {
  const SweepQuestions questions = questions_of(flags);
  const SweepShard shard = flags.shard ? parse_shard(*flags.shard) : SweepShard{};
  const InterruptGuard guard;
  const SweepReport report =
      sweep(questions, {.store = flags.store, .shard = shard, .threads = flags.threads},
            watched_progress("variants"));
  if (flags.json)
    print_document(to_json(report));
  else
    fmt::print("{}", text_of(report, terminal().colour));
  if (report.totals.our_faults > 0) {
    fmt::print(stderr, "{} variants have an internal error, which their \"error\" in {} states\n",
               report.totals.our_faults, report.store);
    return exit_internal_error;
  }
  if (report.stopped) {
    fmt::print(stderr, "stopped after {} of {} variants; the same command continues {}\n",
               report.totals.rows, report.variants, report.store);
    return InterruptGuard::exit_code();
  }
  return report.totals.fits > 0 || report.variants == 0 ? exit_done : exit_answer_is_no;
}

struct MergeFlags {
  std::vector<std::string> files;
  std::optional<std::string> store;
  bool json = false;
};

int run_merge(const MergeFlags& flags) {
  if (!flags.store) {
    if (flags.json) throw InputError{"--json", "needs --store: the merged lines go to stdout"};
    merge_stores(flags.files, [](std::string_view lines) { fmt::print("{}", lines); });
    return exit_done;
  }
  for (const std::string& file : flags.files) {
    if (file == *flags.store) throw InputError{"--store", "is one of the files to merge: " + file};
  }
  DurableFile out{*flags.store};
  const MergedSweep merged =
      merge_stores(flags.files, [&](std::string_view lines) { out.write(lines); });
  out.commit();
  if (flags.json) {
    print_document({{"store", *flags.store},
                    {"scenario", merged.scenario},
                    {"shards", merged.shards},
                    {"variants", merged.variants}});
  } else {
    fmt::print("wrote {}: {} variants of {} in {} shards\n", *flags.store, merged.variants,
               merged.scenario, merged.shards);
  }
  return exit_done;
}

}  // namespace

void add_sweep(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "sweep", "Predict every combination of values into a file that can be continued");
  const auto flags = std::make_shared<SweepFlags>();
  flags->question.add_to(command);
  repeated(*command.add_option("--vary", flags->vary,
                               "The values of one JSON pointer; repeat the flag for more, the last "
                               "one varies fastest: --vary /plan/tensor=2,4,8"))
      .type_name("POINTER=A,B,C")
      ->required();
  command
      .add_option("--store", flags->store,
                  "File of JSON lines, one per variant; begun, or continued where it ends")
      ->required();
  command.add_option("--shard", flags->shard,
                     "Only part NUMBER of OF equal ones, such as 2/8, for job arrays; orrery merge "
                     "joins their stores");
  command.add_option("--tokens", flags->tokens,
                     "Tokens to train on, such as 300B: adds days and dollars to each line");
  command.add_option("--headroom", flags->headroom, headroom_help);
  command
      .add_option("--limit", flags->limit,
                  fmt::format("The most variants that are allowed ({})", usual_most_variants))
      ->check(CLI::PositiveNumber);
  command.add_option("--threads", flags->threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command.add_flag("--json", flags->json, "One JSON document instead of the summary");
  command.callback([flags, &exit_code] { exit_code = run_sweep(*flags); });
}

void add_merge(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("merge", "Join the shards of a sweep, checked to be complete");
  const auto flags = std::make_shared<MergeFlags>();
  command.add_option("files", flags->files, "The stores of all shards, in any order")->required();
  command.add_option("--store", flags->store, "File for the whole sweep (standard output)");
  command.add_flag("--json", flags->json, "One JSON document instead of a line; needs --store");
  command.callback([flags, &exit_code] { exit_code = run_merge(*flags); });
}

}  // namespace orrery::scenarios
