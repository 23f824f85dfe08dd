#include "scenarios/runback/run_comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>

#include "hardware/cluster/recognise.hpp"
#include "models/network/placement.hpp"
#include "models/prediction/breakdown.hpp"
#include "models/program/counts.hpp"
#include "models/program/walk.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"
#include "sim/input/unpacked_file.hpp"
#include "sim/output/durable_file.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

using models::Question;

constexpr double far_apart = 3;  // no software explains such a factor

/// The collectives that a rank of one stage is predicted to run, by communicator.
class PredictedCalls {
 public:
  PredictedCalls(const models::Prediction& prediction, std::uint32_t rank_class)
      : prediction_{prediction}, program_{*prediction.program} {
    models::walk(program_, rank_class, *this);
  }

  struct PredictedCall {
    std::uint16_t communicator = 0;
    models::Collective kind{};
    std::int64_t bytes = 0;
    auto operator<=>(const PredictedCall&) const = default;
  };
  const std::map<PredictedCall, KernelTally>& calls() const { return calls_; }

  void phase(models::Token, const models::Instruction& each) {
    for (const models::Invocation& run : program_.phases[each.target].invocations) {
      const models::Block& block = program_.blocks[run.block];
      for (std::size_t i = 0; i < block.operations.size(); ++i) {
        const models::Operation& op = block.operations[i];
        if (op.kind != models::OpKind::collective) continue;
        add({op.communicator(), op.collective(), op.bytes.count()},
            prediction_.priced.blocks[run.block][i].occupied(), run.count);
      }
    }
  }
  void send(models::Token, const models::Instruction&) {}
  void receive(models::Token, const models::Instruction& each) {
    const models::Channel& channel = program_.channels[each.target];
    add({channel.communicator, models::Collective::send_receive, channel.bytes.count()},
        prediction_.priced.channels[each.target], 1);
  }
  void joint(models::Token, const models::Instruction& each) {
    const models::JointCollective& joint = program_.collectives[each.target];
    add({joint.communicator, joint.kind, joint.bytes.count()},
        prediction_.priced.collectives[each.target].occupied(), 1);
  }

 private:
  void add(const PredictedCall& key, Time each, std::int64_t count) {
    KernelTally& tally = calls_[key];
    tally.count += static_cast<double>(count);
    tally.total += each * count;
  }

  const models::Prediction& prediction_;
  const models::Program& program_;
  std::map<PredictedCall, KernelTally> calls_;
};

std::map<MatrixShape, KernelTally> predicted_shapes(const models::Prediction& prediction,
                                                    std::uint32_t rank_class) {
  const models::Program& program = *prediction.program;
  const std::vector<std::int64_t> runs = models::block_runs(program, rank_class);
  std::map<MatrixShape, KernelTally> shapes;
  for (std::size_t b = 0; b < runs.size(); ++b) {
    for (std::size_t i = 0; i < program.blocks[b].operations.size() && runs[b] > 0; ++i) {
      const models::Operation& op = program.blocks[b].operations[i];
      if (op.kind != models::OpKind::gemm && op.kind != models::OpKind::batched_gemm) continue;
      const models::GemmShape& gemm = op.gemm();
      const MatrixShape shape{.m = gemm.m, .n = gemm.n, .k = gemm.k, .batch = gemm.batch};
      KernelTally& tally = shapes[shape.sorted()];
      tally.count += static_cast<double>(runs[b]);
      tally.total += prediction.priced.blocks[b][i].duration * runs[b];
    }
  }
  return shapes;
}

Time per_step(Time total, const ProfiledRank& rank) {
  return scaled(total, 1 / static_cast<double>(rank.used_steps()));
}

class RunComparer {
 public:
  RunComparer(const Scenario& scenario, const RunRequest& request)
      : scenario_{scenario}, request_{request}, question_{scenario.question()} {
    const bool named = scenario.json().contains("name") || scenario.file() != "command line";
    found_.scenario =
        named ? scenario.name() : question_.model.name + " on " + question_.cluster.name;
  }

  RunComparison run() {
    if (request_.files.empty()) throw InputError{"TRACE", "expected traces or logs of the run"};
    std::vector<std::string> logs, traces;
    for (const std::string& file : request_.files) {
      (is_trace(file) ? traces : logs).push_back(file);
    }
    if (!logs.empty() && !traces.empty()) {
      throw InputError{logs.front(), "is a log of steps and " + traces.front() +
                                         " a trace; accepted: files of one kind"};
    }
    if (!traces.empty() && !request_.run.empty()) {
      throw InputError{"--run", "is for MLflow's stores, not for traces"};
    }
    if (!traces.empty()) read_traces(traces);
    if (!logs.empty()) read_logs(logs);
    found_.prediction = models::predict(question_);
    traces.empty() ? explain_logs() : compare_traces();
    const double off = std::abs(std::log(ratio(found_.measured, found_.prediction.step)));
    if (off > std::log(far_apart)) {
      found_.notes.push_back(
          fmt::format("run and prediction differ {:.1f} times: check that model, "
                      "batch, GPUs and what counts as a step are the same",
                      std::exp(off)));
    }
    const models::BatchSizes& batch = question_.plan.batch;
    found_.tokens_per_second =
        static_cast<double>(batch.global * batch.seq_len) / seconds(found_.measured);
    if (request_.fit_out) write_fit();
    return std::move(found_);
  }

 private:
  static bool is_trace(const std::string& file) {
    constexpr std::size_t enough = std::size_t{1} << 16;
    std::error_code unknown;
    if (std::filesystem::is_directory(file, unknown)) return false;
    return is_profile(first_bytes(file, enough));
  }

  /// Errors  logs that cannot be of one run: another batch or length, or a median that is over
  /// 10 % off (ranks of one job wait for each other)
  static void require_one_run(const std::vector<RunLog>& logs, const std::vector<double>& medians) {
    constexpr double most_apart = 1.1;
    for (std::size_t i = 1; i < logs.size(); ++i) {
      const RunLog &one = logs[0], &other = logs[i];
      std::string why;
      const auto differ = [&](const auto& a, const auto& b, std::string_view what) {
        if (a && b && *a != *b) why = fmt::format("{} of {} and of {}", what, *a, *b);
      };
      differ(one.seq_len, other.seq_len, "sequences");
      differ(one.global_batch, other.global_batch, "batches");
      const double apart = std::max(medians[0], medians[i]) / std::min(medians[0], medians[i]);
      if (why.empty() && apart > most_apart && !one.own_time) {
        why = fmt::format("medians of {} and {} a step", format(from_seconds(medians[0])),
                          format(from_seconds(medians[i])));
      }
      if (why.empty()) continue;
      throw InputError{other.file, fmt::format("and {} are of different runs: {}; compare them one "
                                               "at a time",
                                               one.file, why)};
    }
  }

  /// Takes what the logs state of the plan.
  /// Errors  a value that the plan cannot have: InputError
  void take_stated(const RunLog& log) {
    const models::BatchSizes batch = question_.plan.batch;
    std::vector<std::pair<std::string, Json>> changes;
    const auto take = [&](const char* pointer, std::optional<std::int64_t> stated,
                          std::int64_t own) {
      if (!stated || *stated == own) return;
      changes.emplace_back(pointer, *stated);
      found_.contradictions.push_back({.pointer = pointer, .scenario = own, .log = *stated});
    };
    take("/plan/global_batch", log.global_batch, batch.global);
    const bool sequences = models::unit_word(question_.model) == "tokens";
    if (sequences) take("/plan/seq_len", log.seq_len, batch.seq_len);
    if (changes.empty()) return;
    try {
      scenario_ = scenario_.replace(changes);
      question_ = scenario_.question();
    } catch (const InputError& refused) {
      throw InputError{
          log.file,
          fmt::format("its steps have {} {}, the scenario's {}; and with that: {}",
                      found_.contradictions.front().log, words_of(found_.contradictions.front()),
                      found_.contradictions.front().scenario, refused.what())};
    }
    for (const StatedByLog& each : found_.contradictions) {
      found_.notes.push_back(
          fmt::format("{}: its steps have {} {}, the scenario states {}; predicted with the "
                      "log's (--set {}={})",
                      log.file, each.log, words_of(each), each.scenario, each.pointer, each.log));
    }
  }

  static std::string_view words_of(const StatedByLog& each) {
    return each.pointer == "/plan/seq_len" ? "tokens a sequence" : "sequences";
  }

  void read_logs(const std::vector<std::string>& files) {
    std::vector<RunLog> logs;
    for (const std::string& file : files) logs.push_back(read_run_log(file, request_.run));
    for (const RunLog& log : logs) {
      found_.log_format = log.format;
      found_.notes.insert(found_.notes.end(), log.notes.begin(), log.notes.end());
    }
    const auto states = [](const RunLog& log) { return log.global_batch || log.seq_len; };
    const auto stating = std::ranges::find_if(logs, states);
    if (stating != logs.end()) take_stated(*stating);
    std::vector<double> all, medians;
    for (const RunLog& log : logs) {
      const std::vector<double> own = log.step_seconds(&question_);
      const std::size_t skip = request_.profile.skip.value_or(warm_up_of(own));
      const StepStatistics alone = statistics_of(own, skip);
      medians.push_back(alone.median);
      if (logs.size() == 1) {
        found_.steps = alone;
        break;
      }
      found_.steps.left_out += alone.left_out;
      all.insert(all.end(), own.begin() + static_cast<std::ptrdiff_t>(skip), own.end());
    }
    require_one_run(logs, medians);
    if (logs.size() > 1) {
      const std::size_t left_out = found_.steps.left_out;
      found_.steps = statistics_of(all, 0);
      found_.steps.left_out = left_out;
      found_.steps.trend = 0;
      found_.notes.push_back(fmt::format("steps of {} logs taken together", files.size()));
    }
    found_.measured = from_seconds(found_.steps.median);
    if (found_.steps.left_out > 0) {
      found_.notes.push_back(
          fmt::format("{} step{} left out as warm-up (--skip N states another number)",
                      found_.steps.left_out, found_.steps.left_out == 1 ? "" : "s"));
    }
  }

  void read_traces(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      found_.ranks.push_back(read_profiled_rank(file, request_.profile));
    }
    const auto computing = [](const ProfiledRank& rank) { return rank.wall().computing(); };
    const auto longest = std::ranges::max_element(found_.ranks, {}, computing);
    found_.chosen = static_cast<std::size_t>(longest - found_.ranks.begin());
    const ProfiledRank& rank = *longest;
    found_.measured = rank.wall().sum();
    found_.steps = statistics_of(rank.step_seconds(), 0);
    found_.steps.left_out = rank.steps.size() - rank.used_steps();
    for (const ProfiledRank& each : found_.ranks) {
      for (const std::string& note : each.notes) {
        const bool alone = found_.ranks.size() == 1;
        const std::string text = alone ? note : each.name() + ": " + note;
        if (std::ranges::find(found_.notes, text) == found_.notes.end()) {
          found_.notes.push_back(text);
        }
      }
    }
    note_other_hardware(rank);
  }

  void note_other_hardware(const ProfiledRank& rank) {
    const std::int64_t gpus = question_.plan.gpus();
    if (rank.world && *rank.world != gpus) {
      found_.notes.push_back(
          fmt::format("recorded on {} ranks, and the scenario has {}: differences "
                      "are of another run, too",
                      *rank.world, gpus));
    }
    if (rank.device.empty()) return;
    const auto gpu = hardware::recognised_gpu(rank.device, rank.device_memory);
    if (gpu && *gpu != question_.cluster.gpu().name) {
      found_.notes.push_back(
          fmt::format("recorded on {} ({}), and the scenario has {}: differences "
                      "are of another GPU, too",
                      printable(rank.device, 60), *gpu, question_.cluster.gpu().name));
    }
  }

  void explain_logs() {
    found_.rank_class = found_.prediction.slowest;
    found_.alternatives =
        explain_measured(scenario_, question_, found_.prediction, found_.measured);
    found_.unexplained = found_.measured - found_.prediction.step;
  }

  void compare_traces() {
    const ProfiledRank& rank = found_.ranks[found_.chosen];
    const models::Program& program = *found_.prediction.program;
    found_.rank_class = found_.prediction.slowest;
    if (rank.rank && rank.world == program.mesh.ranks() && *rank.rank < program.mesh.ranks()) {
      found_.rank_class = static_cast<std::uint32_t>(program.mesh.stage_of(*rank.rank));
    }
    const ClassTimes predicted = predicted_classes(found_.prediction, found_.rank_class);
    const ClassTimes measured = rank.wall();
    for (const auto& each : run_class_words) {
      found_.classes.push_back({.which = each.value,
                                .predicted = predicted[each.value],
                                .measured = measured[each.value],
                                .kernels = rank.kernels_per_step(each.value)});
    }
    add_collectives(rank);
    add_shapes(rank);
    if (!agrees(found_)) add_changes(scenario_, question_, found_);
  }

  void add_shapes(const ProfiledRank& rank) {
    std::map<MatrixShape, RunShape> rows;
    if (rank.shapes.empty()) {
      found_.notes.push_back("no shapes in the trace; record_shapes=True records them");
      return;
    }
    for (const auto& [shape, tally] : predicted_shapes(found_.prediction, found_.rank_class)) {
      rows[shape].predicted = tally;
    }
    for (const auto& [shape, tally] : rank.shapes) {
      rows[shape].measured = KernelTally{tally.count / static_cast<double>(rank.used_steps()),
                                         per_step(tally.total, rank)};
    }
    for (auto& [shape, row] : rows) {
      row.shape = shape;
      found_.shapes.push_back(std::move(row));
    }
    const auto longest = [](const RunShape& row) {
      return std::max(row.predicted.value_or(KernelTally{}).total,
                      row.measured.value_or(KernelTally{}).total);
    };
    std::ranges::stable_sort(found_.shapes, std::greater{}, longest);
  }

  /// Sums of the used steps, by what a call is, whichever ranks take part.
  std::map<CollectiveKey, KernelTally> measured_calls(const ProfiledRank& rank) const {
    std::map<CollectiveKey, KernelTally> calls;
    for (const ProfiledStep& step : rank.steps) {
      if (!step.used) continue;
      for (const ProfiledCall& call : step.calls) {
        CollectiveKey key = rank.collectives[call.key];
        key.members.clear();
        KernelTally& tally = calls[key];
        tally.count += 1;
        tally.total += call.duration;
      }
    }
    return calls;
  }

  /// Time of the chosen rank's calls without waiting, where the traces of peers say it.
  std::map<CollectiveKey, Time> transfers(const ProfiledRank& rank) const {
    struct JoinedCall {
      Time shortest{};
      std::size_t ranks = 0;
    };
    using Instance = std::tuple<std::string, CollectiveKey, std::size_t>;  // step, call, ordinal
    std::map<Instance, JoinedCall> instances;
    for (const ProfiledRank& each : found_.ranks) {
      for (const ProfiledStep& step : each.steps) {
        std::map<CollectiveKey, std::size_t> ordinals;
        for (const ProfiledCall& call : step.calls) {
          const CollectiveKey& key = each.collectives[call.key];
          JoinedCall& joined = instances[{step.name, key, ordinals[key]++}];
          joined.shortest =
              joined.ranks == 0 ? call.duration : std::min(joined.shortest, call.duration);
          ++joined.ranks;
        }
      }
    }
    std::map<CollectiveKey, Time> all;
    for (const ProfiledStep& step : rank.steps) {
      if (!step.used) continue;
      std::map<CollectiveKey, std::size_t> ordinals;
      for (const ProfiledCall& call : step.calls) {
        CollectiveKey key = rank.collectives[call.key];
        const JoinedCall& joined = instances.at({step.name, key, ordinals[key]++});
        if (joined.ranks < 2) continue;
        key.members.clear();
        all[key] += joined.shortest;
      }
    }
    return all;
  }

  void add_collectives(const ProfiledRank& rank) {
    const models::Program& program = *found_.prediction.program;
    const std::map<CollectiveKey, Time> alone = transfers(rank);
    for (const auto& [key, tally] : measured_calls(rank)) {
      RunCollective row;
      row.key = key;
      row.measured = KernelTally{tally.count / static_cast<double>(rank.used_steps()),
                                 per_step(tally.total, rank)};
      if (const auto own = alone.find(key); own != alone.end()) {
        row.transfer = per_step(own->second, rank);
      }
      found_.collectives.push_back(std::move(row));
    }
    const PredictedCalls predicted{found_.prediction, found_.rank_class};
    for (const auto& [key, tally] : predicted.calls()) {
      const models::Communicator& group = program.communicators.at(key.communicator);
      const auto shape =
          models::shape_of(program.mesh, group, key.kind, question_.cluster.node.gpus,
                           models::order_of(question_.network.order.axes, program.rank_order));
      const CollectiveKey written{.kind = std::string{models::name(key.kind)},
                                  .group = {},
                                  .ranks = shape.ranks,
                                  .bytes = key.bytes};
      RunCollective* const partner = partner_of(written);
      if (partner) {
        partner->predicted = tally;
        partner->communicator = group.name;
        continue;
      }
      RunCollective row;
      row.key = written;
      row.communicator = group.name;
      row.predicted = tally;
      found_.collectives.push_back(std::move(row));
    }
    const auto longest = [](const RunCollective& row) {
      return std::max(row.predicted.value_or(KernelTally{}).total,
                      row.measured.value_or(KernelTally{}).total);
    };
    std::ranges::stable_sort(found_.collectives, std::greater{}, longest);
    if (found_.ranks.size() == 1 && !measured_calls(rank).empty()) {
      found_.notes.push_back(
          "collectives include waiting for the slowest rank; traces of several ranks tell it "
          "apart");
    }
  }

  /// The measured row of the same collective: equal ranks, bytes within 5 % (padding).
  RunCollective* partner_of(const CollectiveKey& key) {
    constexpr double near = 0.05;
    RunCollective* best = nullptr;
    double closest = near;
    for (RunCollective& row : found_.collectives) {
      if (!row.measured || row.predicted || row.key.kind != key.kind) continue;
      if (row.key.ranks != key.ranks || row.key.bytes <= 0 || key.bytes <= 0) continue;
      const double off =
          std::abs(std::log(static_cast<double>(row.key.bytes) / static_cast<double>(key.bytes)));
      if (off > closest) continue;
      closest = off;
      best = &row;
    }
    return best;
  }

  void write_fit() {
    found_.fit = fit_run(scenario_, found_);
    const std::filesystem::path folder{*request_.fit_out};
    make_folder(folder.string());
    write_durably((folder / "software.json").string(), found_.fit->software.dump(2) + "\n");
    write_durably((folder / "cluster.json").string(), found_.fit->cluster.dump(2) + "\n");
  }

  Scenario scenario_;  // with what the logs state
  const RunRequest& request_;
  Question question_;
  RunComparison found_;
};

}  // namespace

ClassTimes predicted_classes(const models::Prediction& prediction, std::uint32_t rank_class) {
  ClassTimes times =
      rank_class == prediction.slowest
          ? classes_of(prediction.breakdown)
          : classes_of(models::breakdown_of(prediction.priced, prediction.times, rank_class));
  times[RunClass::data_loading] += prediction.data_wait();
  if (rank_class == prediction.slowest) return times;
  times[RunClass::other] += prediction.step - times.sum();
  return times;
}

RunComparison compare_run(const Scenario& scenario, const RunRequest& request) {
  return RunComparer{scenario, request}.run();
}

}  // namespace orrery::scenarios
