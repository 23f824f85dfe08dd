// One rank of `orrery execute`, from the meeting to the report.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <thread>

#include "executor/launch/private_folder.hpp"
#include "executor/launch/process_name.hpp"
#include "executor/launch/signals.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/ending.hpp"
#include "scenarios/command/execute_meeting.hpp"
#include "scenarios/command/execute_result.hpp"
#include "scenarios/command/execute_saving.hpp"
#include "scenarios/command/execute_trace.hpp"
#include "scenarios/command/metrics.hpp"
#include "scenarios/result.hpp"
#include "sim/output/line_log.hpp"

namespace orrery::scenarios {

using executor::Exit;
using executor::RunFailure;
using executor::SignalWishes;

namespace {

constexpr std::chrono::milliseconds between_lines{500};  // of progress
constexpr std::chrono::minutes for_results{5};
constexpr std::chrono::minutes to_begin{10};  // the first step, which builds kernels

/// What rank 0 says while it runs: lines on stderr, a log, metrics.
class Voice {
 public:
  Voice(const models::Question& question, const ExecuteOptions& options, int rank)
      : steps_{options.steps},
        tokens_{static_cast<double>(question.plan.global_batch) *
                static_cast<double>(question.plan.seq_len)},
        speaks_{rank == 0} {
    if (!speaks_) return;
    if (options.log) log_.emplace(*options.log);
    if (options.metrics_port) {
      metrics_.emplace(executor::Address{.host = options.metrics_address.value_or("127.0.0.1"),
                                         .port = *options.metrics_port});
      metrics_->set("orrery_ranks", Metrics::Kind::gauge, "Ranks of the run",
                    static_cast<double>(question.plan.gpus()));
    }
  }

  void say(const MeasuredStep& step) {
    if (!speaks_) return;
    const double rate = tokens_ / step.seconds;
    trained_ += tokens_;
    if (log_) {
      log_->add(Json{
          {"step", step.index},
          {"loss", step.loss},
          {"gradient_norm", step.gradient_norm},
          {"loss_scale", step.loss_scale},
          {"skipped_updates", step.skipped},
          {"step_time_s", step.seconds},
          {"tokens_per_s",
           rate}}.dump());
    }
    if (step.skipped > 0 && !std::isfinite(step.gradient_norm)) {
      fmt::print(stderr, "step {} of {}  gradients are not finite: no update{}\n", step.index + 1,
                 steps_, step.loss_scale > 1 ? ", half the loss scale" : "");
    }
    if (metrics_) show(step, rate);
    const auto now = executor::Clock::now();
    if (now < next_line_ && step.index + 1 < steps_) return;
    next_line_ = now + between_lines;
    fmt::print(stderr, "step {} of {}  loss {:.4f}  {:.4g} tokens/s\n", step.index + 1, steps_,
               step.loss, rate);
  }

 private:
  void show(const MeasuredStep& step, double rate) {
    using Kind = Metrics::Kind;
    metrics_->set("orrery_step", Kind::counter, "Steps done", static_cast<double>(step.index + 1));
    metrics_->set("orrery_loss", Kind::gauge, "Mean loss of the last step", step.loss);
    metrics_->set("orrery_gradient_norm", Kind::gauge, "Before clipping", step.gradient_norm);
    metrics_->set("orrery_step_time_seconds", Kind::gauge, "Of the last step", step.seconds);
    metrics_->set("orrery_tokens_total", Kind::counter, "Tokens trained on by this run", trained_);
    metrics_->set("orrery_tokens_per_second", Kind::gauge, "In the last step", rate);
  }

  std::int64_t steps_;
  double tokens_, trained_ = 0;
  bool speaks_;
  std::optional<LineLog> log_;
  std::optional<Metrics> metrics_;
  executor::Deadline next_line_{};
};

class RankRun {
 public:
  RankRun(const models::Question& question, const ExecuteOptions& options, executor::Device& device,
          Meeting& meeting)
      : question_{question},
        options_{options},
        device_{device},
        meeting_{meeting},
        rank_{meeting.placed().rank},
        voice_{question, options, rank_},
        prediction_{models::predict(question)},
        tokens_{options.data.empty()
                    ? executor::synthetic_tokens(options.seed, question.model.vocab)
                    : executor::text_tokens(options.data, question.model.vocab,
                                            question.plan.global_batch)},
        saving_{question, options, *tokens_, meeting},
        runner_{*prediction_.program, question.software, device_, meeting.fabric(), settings()},
        limits_{prediction_.priced, prediction_.program->mesh.stage_of(rank_), prediction_.step,
                bounds(options)} {
    if (rank_ == 0) meeting_.says_at_last([this] { return saving_.loss(); });
  }
  ~RankRun() {
    meeting_.does("its end", for_results);
    meeting_.says_at_last({});
  }
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  void train() {
    first_ = saving_.resume(runner_);
    if (options_.checkpoint) SignalWishes::answer_after_the_step();
    meeting_.steps(runner_, limits_);
    try {
      take_steps();
    } catch (...) {
      const std::string lost = rank_ == 0 ? saving_.loss() : "";
      if (!lost.empty()) fmt::print(stderr, "{}\n", lost);
      throw;
    }
    if (options_.traces() && !steps_.empty()) record_one_more();
  }

  /// Everybody's measurements at rank 0, which prints them.
  void report() {
    meeting_.does("its report", for_results);
    RankResult mine{.peak = runner_.memory().peak, .resident = runner_.memory().resident};
    for (const MeasuredStep& each : steps_) mine.seconds.push_back(each.seconds);
    executor::Store& store = meeting_.store();
    store.set(key("result", rank_), packed(mine));
    if (options_.traces()) {
      store.set(key("trace", rank_), packed(runner_.trace(), begun_ + store.clock_offset()));
    }
    if (rank_ == 0) print();
    meeting_.barrier("reported");
  }

 private:
  /// Measured steps carry no marks, as predicted ones do not: the trace is of another step, after
  /// the last checkpoint.
  void record_one_more() {
    runner_.record(options_.detail);
    begun_ = executor::Clock::now();
    runner_.step(options_.steps);
  }

  void take_steps() {
    for (std::int64_t index = first_; index < options_.steps; ++index) {
      if (const auto verdict = meeting_.watchdog().verdict()) {
        throw RunFailure{verdict->code, verdict->why};
      }
      const executor::StepOutcome outcome = runner_.step(index);
      limits_.measured(outcome.wall);
      steps_.push_back({.index = index,
                        .seconds = in_seconds(outcome.wall),
                        .loss = outcome.loss,
                        .gradient_norm = outcome.gradient_norm,
                        .loss_scale = outcome.loss_scale,
                        .skipped = outcome.skipped});
      voice_.say(steps_.back());
      saving_.after_step(runner_, limits_, index + 1);
    }
  }

  executor::RunSettings settings() const {
    executor::RunSettings chosen;
    chosen.seed = options_.seed;
    chosen.tokens = tokens_.get();
    chosen.trace = executor::TraceDetail::none;
    chosen.drawn = [this](std::int64_t, std::int64_t) { meeting_.watchdog().alive(); };
    chosen.alive = [this] { meeting_.watchdog().alive(); };
    return chosen;
  }
  static executor::InstructionLimits::Bounds bounds(const ExecuteOptions& options) {
    const std::chrono::milliseconds least{static_cast<std::int64_t>(options.stall * 1000)};
    return {.least = least, .first = to_begin};
  }
  static std::string key(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

  void print() {
    Execution all{.ranks = meeting_.placed().ranks,
                  .resumed_from = first_,
                  .fabric = std::string{meeting_.fabric().name()},
                  .device = device_.description(),
                  .steps = steps_,
                  .graphs = runner_.graphs(),
                  .host_waits = meeting_.fabric().host_waits()};
    std::vector<std::string> traces;
    for (int rank = 0; rank < all.ranks; ++rank) {
      const RankResult theirs = parse_result(meeting_.store().get(key("result", rank), for_results),
                                             rank, all.steps.size());
      all.peak = std::max(all.peak, theirs.peak);
      all.resident = std::max(all.resident, theirs.resident);
      for (std::size_t i = 0; i < all.steps.size(); ++i) {
        all.steps[i].seconds = std::max(all.steps[i].seconds, theirs.seconds[i]);
      }
      if (options_.traces())
        traces.push_back(meeting_.store().get(key("trace", rank), for_results));
    }
    if (options_.traces()) {
      all.trace = merged(traces);
      all.trace->note("peak_memory_bytes", all.peak.count());
    }
    if (options_.trace) write_trace(*all.trace, *options_.trace);
    print_execution(question_, prediction_, all, options_);
    flush_output();
  }

  const models::Question& question_;
  const ExecuteOptions& options_;
  executor::Device& device_;
  Meeting& meeting_;
  int rank_;
  Voice voice_;
  models::Prediction prediction_;  // and the Program that it priced, which is the one that runs
  std::unique_ptr<executor::TokenSource> tokens_;
  Saving saving_;  // before parameters are drawn: a folder that cannot be used is known early
  executor::Runner runner_;
  executor::InstructionLimits limits_;
  std::int64_t first_ = 0;
  std::vector<MeasuredStep> steps_;
  executor::Deadline begun_{};  // the recorded step
};

int run_one(const models::Question& asked, const ExecuteOptions& options,
            const executor::Placement& placed, const std::optional<Meeting::Threads>& threads) {
  Equipment equipped;  // outlives the fabrics that read its memory
  Meeting meeting{options, placed, threads};
  try {
    equipped = equipment(options.backend, placed);
    meeting.connect(equipped);
    const models::Question question = fitted(asked, *equipped.device);
    RankRun run{question, options, *equipped.device, meeting};
    run.train();
    run.report();
    return exit_done;
  } catch (const RunFailure& failure) {
    return meeting.fail(failure.code(), failure.what());
  } catch (const std::exception& error) {
    const Failure failure = failure_of(error);
    return meeting.fail(static_cast<Exit>(failure.code), failure.line);
  }
}

}  // namespace

int run_rank(const models::Question& question, const ExecuteOptions& options,
             const executor::Placement& placed) {
  if (placed.ranks > 1) executor::name_process(placed.rank);
  return run_one(question, options, placed, std::nullopt);
}

int run_threads(const models::Question& question, const ExecuteOptions& options, int ranks) {
  constexpr std::chrono::hours forever{24 * 365};  // the watchdog sees to it
  executor::ThreadWorld world{ranks, forever};
  const executor::StoreServer server{executor::unused_socket(), {.job = "threads", .ranks = ranks}};
  std::vector<int> codes(static_cast<std::size_t>(ranks), exit_our_fault);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      executor::name_thread(rank);
      const executor::Placement placed{
          .launcher = executor::Launcher::orrery, .rank = rank, .ranks = ranks, .job = "threads"};
      codes[static_cast<std::size_t>(rank)] =
          run_one(question, options, placed, Meeting::Threads{&world, server.address()});
    });
  }
  for (std::thread& each : threads) each.join();
  for (const int code : codes) {
    if (code != exit_done && code != static_cast<int>(Exit::peer_failed)) return code;
  }
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace orrery::scenarios
