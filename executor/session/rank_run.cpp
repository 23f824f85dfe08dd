// One rank of a run, from the connection with the others to rank 0's report.

#include <fmt/format.h>

#include <algorithm>

#include "executor/launch/process_name.hpp"
#include "executor/pretrained/pretrained.hpp"
#include "executor/run/blocks/expert_rows.hpp"
#include "executor/run/weights/weights.hpp"
#include "executor/session/rank_result.hpp"
#include "executor/session/rank_session.hpp"
#include "executor/session/session_checkpoints.hpp"
#include "executor/session/step_log.hpp"
#include "executor/session/trace_merge.hpp"
#include "models/data/lane_names.hpp"
#include "models/plan/derived.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::minutes for_results{5};
constexpr std::chrono::minutes to_export{30};
constexpr std::chrono::minutes to_begin{10};  // the first step, which builds kernels

/// The lane of a step's input, as a predicted trace has it: what the stages of its batch took,
/// whenever they ran, and what the step waited before its first instruction.
void add_input(const InputTimes& times, Trace& trace) {
  const std::pair<const char*, Time> stages[] = {
      {"read", times.read}, {"decode", times.decode}, {"copy", times.copy}, {"wait", times.wait}};
  for (const auto& [name, time] : stages) {
    if (time <= Time{} || trace.processes().empty()) continue;
    const bool waits = std::string_view{name} == "wait";
    trace.add({.track = trace.add_track(trace.processes().front(), std::string{"input: "} + name),
               .start = {},
               .duration = time,
               .name = waits ? "the step waits" : std::string{name} + " of its batch",
               .id = models::trace_input_id(name),
               .kind = "data"});
  }
}

class RankRun {
 public:
  RankRun(const models::Question& question, const SessionOptions& options, Device& device,
          RankSession& session)
      : question_{question},
        options_{options},
        device_{device},
        session_{session},
        rank_{session.placed().rank},
        log_{rank_ == 0 ? std::make_unique<StepLog>(question, options) : nullptr},
        prediction_{models::predict(question)},
        tokens_{options.data.empty()
                    ? synthetic_tokens(options.seed, question.model.embedding.vocab)
                    : text_tokens(options.data, question.model.embedding.vocab,
                                  question.plan.batch.global)},
        initial_{options.initial
                     ? std::make_unique<PretrainedWeights>(*options.initial, question.model)
                     : nullptr},
        checkpoints_{question, options, *tokens_, session},
        runner_{*prediction_.program, question.software, device_, session.fabric(), settings()},
        limits_{prediction_.priced, prediction_.program->mesh.stage_of(rank_), prediction_.step,
                bounds(options)} {
    if (options.exported) export_ = exporter();
    if (rank_ != 0) return;
    log_->expect(prediction_.step, prediction_.model_flops);
    session_.report_loss([this] { return checkpoints_.loss(); });
  }
  ~RankRun() {
    session_.does("its end", for_results);
    session_.report_loss({});
  }
  RankRun(const RankRun&) = delete;
  RankRun& operator=(const RankRun&) = delete;

  void train() {
    first_ = checkpoints_.resume(runner_);
    if (log_ && first_ > 0) log_->resume_after(first_);
    initial_.reset();
    const bool all_trained = runner_.layout().frozen_tensors().empty();
    if (first_ > 0 && options_.initial && all_trained && rank_ == 0) {
      session_.note("--init is ignored: the checkpoint has newer parameters");
    }
    if (options_.checkpoint) session_.requests().answer_after_the_step();
    session_.steps(runner_, limits_);
    try {
      take_steps();
    } catch (...) {
      const std::string lost = rank_ == 0 ? checkpoints_.loss() : "";
      if (!lost.empty()) session_.note(lost);
      throw;
    }
    if (export_) export_parameters();
    if (traces() && !steps_.empty()) record_one_more();
  }

  /// Sends this rank's measurements to rank 0, which hands those of all ranks to `events.done`.
  void report() {
    session_.does("its report", for_results);
    RankResult mine{.peak = runner_.memory().peak,
                    .resident = runner_.memory().resident,
                    .host = runner_.memory().host,
                    .routed = runner_.routed()};
    for (const MeasuredStep& each : steps_) {
      mine.seconds.push_back(each.seconds);
      mine.input.push_back(each.input);
    }
    Store& store = session_.store();
    store.set(key("result", rank_), packed(mine));
    if (traces()) {
      Trace trace = runner_.trace();
      add_input(recorded_, trace);
      store.set(key("trace", rank_), packed(trace, begun_ + store.clock_offset()));
    }
    if (rank_ == 0) finish();
    if (log_) log_->finish();
    session_.barrier("reported");
  }

 private:
  bool traces() const { return options_.detail != TraceDetail::none; }

  /// Fails early where the file cannot be written.
  std::unique_ptr<PretrainedExport> exporter() const {
    if (rank_ == 0) require_writable(*options_.exported);
    return std::make_unique<PretrainedExport>(
        *options_.exported, question_.model, runner_.weights().formats().state, exported_tensors());
  }

  /// Trained tensors and, unless only adapters are trained, the model's frozen ones.
  std::vector<StateTensor> exported_tensors() const {
    std::vector<StateTensor> all = runner_.layout().tensors();
    if (models::trains_adapters(question_.plan)) return all;
    all.insert(all.end(), runner_.layout().frozen_tensors().begin(),
               runner_.layout().frozen_tensors().end());
    return all;
  }

  void export_parameters() {
    session_.does("its export", to_export);
    Store& store = session_.store();
    if (rank_ == 0) store.set("export file", export_->create());
    session_.barrier("export begun");
    const std::string file = store.get("export file", for_results);
    export_->write(file, {.tensors = runner_.layout().tensors(),
                          .runs = runner_.layout().runs(),
                          .read = [this](std::int64_t local, std::span<double> to) {
                            read_parameters(local, to);
                          }});
    if (!models::trains_adapters(question_.plan)) {
      export_->write(
          file, {.tensors = runner_.layout().frozen_tensors(),
                 .runs = runner_.layout().frozen_runs(),
                 .read = [this](std::int64_t local,
                                std::span<double> to) { runner_.weights().read_frozen(local, to); },
                 .first = runner_.layout().tensors().size()});
    }
    session_.barrier("export written");
    if (rank_ == 0) export_->commit();
    session_.steps(runner_, limits_);
  }

  void read_parameters(std::int64_t local, std::span<double> to) {
    session_.watchdog().alive();
    if (runner_.weights().formats().state == models::DType::fp64) {
      return runner_.weights().read_state(StateKind::parameter, local, std::ssize(to), to.data());
    }
    std::vector<float> narrow(to.size());
    runner_.weights().read_state(StateKind::parameter, local, std::ssize(to), narrow.data());
    std::copy(narrow.begin(), narrow.end(), to.begin());
  }

  /// Runs one more step for the trace, after the last checkpoint: measured steps record nothing,
  /// because recording costs time that the prediction does not have.
  void record_one_more() {
    runner_.record(options_.detail);
    begun_ = Clock::now();
    recorded_ = runner_.step(options_.steps).input;
  }

  void take_steps() {
    for (std::int64_t index = first_; index < options_.steps; ++index) {
      if (const auto verdict = session_.watchdog().verdict()) {
        throw RunFailure{verdict->code, verdict->why};
      }
      const StepOutcome outcome = runner_.step(index);
      limits_.measured(outcome.wall);
      steps_.push_back({.index = index,
                        .seconds = seconds(outcome.wall),
                        .tokens = tokens_of_step_,
                        .loss = outcome.loss,
                        .gradient_norm = outcome.gradient_norm,
                        .loss_scale = outcome.loss_scale,
                        .skipped = outcome.skipped,
                        .input = outcome.input});
      if (log_) log_->add(steps_.back());
      if (rank_ == 0 && session_.events().step) session_.events().step(steps_.back());
      checkpoints_.after_step(runner_, limits_, index + 1);
    }
  }

  RunSettings settings() const {
    RunSettings chosen;
    chosen.seed = options_.seed;
    chosen.tokens = tokens_.get();
    chosen.ahead = ahead();
    // No more than the run's steps: there is room for every batch that is read ahead.
    chosen.ahead.batches = std::min(chosen.ahead.batches, options_.steps);
    chosen.initial = initial_.get();
    chosen.trace = TraceDetail::none;
    chosen.drawn = [this](std::int64_t, std::int64_t) { session_.watchdog().alive(); };
    chosen.alive = [this] { session_.watchdog().alive(); };
    return chosen;
  }
  ReadAhead ahead() const {
    if (!question_.data) return {};
    return {.batches = question_.data->prefetch, .background = question_.data->background};
  }
  static InstructionLimits::Bounds bounds(const SessionOptions& options) {
    const std::chrono::milliseconds least{static_cast<std::int64_t>(options.stall * 1000)};
    return {.least = least, .first = to_begin};
  }
  static std::string key(const char* what, int rank) { return fmt::format("{}/{}", what, rank); }

  /// Takes the slowest rank's times and the fullest rank's memory.
  void gather(Execution& all) {
    std::vector<std::string> traces_of_ranks;
    std::vector<RoutedBytes> routed;
    for (int rank = 0; rank < all.ranks; ++rank) {
      const std::string bytes = session_.store().get(key("result", rank), for_results);
      const RankResult theirs = parse_result(bytes, rank, all.steps.size());
      all.peak = std::max(all.peak, theirs.peak);
      all.resident = std::max(all.resident, theirs.resident);
      all.host = std::max(all.host, theirs.host);
      all.routed.rows += theirs.routed.rows;
      all.routed.slots += theirs.routed.slots;
      routed.push_back(theirs.routed);
      for (std::size_t i = 0; i < all.steps.size(); ++i) {
        all.steps[i].seconds = std::max(all.steps[i].seconds, theirs.seconds[i]);
        for (const auto part : input_parts) {
          all.steps[i].input.*part = std::max(all.steps[i].input.*part, theirs.input[i].*part);
        }
      }
      if (!traces()) continue;
      traces_of_ranks.push_back(session_.store().get(key("trace", rank), for_results));
    }
    all.imbalance = measured_imbalance(routed);
    if (!traces()) return;
    all.trace = merged(traces_of_ranks);
    all.trace->note("peak_memory_bytes", all.peak.count());
  }

  void finish() {
    Execution all{.ranks = session_.placed().ranks,
                  .resumed_from = first_,
                  .fabric = std::string{session_.fabric().name()},
                  .device = device_.description(),
                  .steps = steps_,
                  .graphs = runner_.graphs(),
                  .ahead = ahead(),
                  .host_waits = session_.fabric().host_waits()};
    gather(all);
    if (session_.events().done) session_.events().done({question_, prediction_, all});
  }

  const models::Question& question_;
  const SessionOptions& options_;
  Device& device_;
  RankSession& session_;
  int rank_;
  std::unique_ptr<StepLog> log_;   // rank 0's
  models::Prediction prediction_;  // and the Program that it priced, which is the one that runs
  std::unique_ptr<TokenSource> tokens_;
  std::unique_ptr<PretrainedWeights> initial_;  // until parameters are set
  SessionCheckpoints checkpoints_;  // before parameters are drawn: fails early without a folder
  Runner runner_;
  InstructionLimits limits_;
  double tokens_of_step_ = static_cast<double>(question_.plan.batch.global) *
                           static_cast<double>(question_.plan.batch.seq_len);
  std::int64_t first_ = 0;
  std::vector<MeasuredStep> steps_;
  std::unique_ptr<PretrainedExport> export_;
  Deadline begun_{};       // when the recorded step began
  InputTimes recorded_{};  // of its batch
};

/// The exit code for what was thrown in a rank.
Exit exit_of(const std::exception& thrown) {
  if (dynamic_cast<const InputError*>(&thrown) != nullptr) return Exit::wrong_input;
  if (dynamic_cast<const OutputError*>(&thrown) != nullptr) return Exit::output_failed;
  return Exit::our_fault;
}

}  // namespace

Exit run_one(const Session& asked, const Placement& placed,
             const std::optional<ThreadRanks>& threads) {
  Equipment equipped;  // outlives the fabrics that read its memory
  RankSession session{asked, placed, threads};
  try {
    equipped = equipment(asked.options.backend, placed);
    session.connect(equipped);
    const models::Question question = fitted(asked.question, *equipped.device);
    RankRun run{question, asked.options, *equipped.device, session};
    run.train();
    run.report();
    return Exit::done;
  } catch (const RunFailure& failure) {
    return session.fail(failure.code(), failure.what());
  } catch (const std::exception& error) {
    return session.fail(exit_of(error), error.what());
  }
}

Exit run_rank(const Session& session, const Placement& placed) {
  if (placed.ranks > 1) name_process(placed.rank);
  return run_one(session, placed, std::nullopt);
}

}  // namespace orrery::executor
