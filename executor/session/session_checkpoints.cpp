#include "executor/session/session_checkpoints.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>

#include "executor/errors.hpp"
#include "executor/run/weights/weights.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::minutes for_a_rank{5};
constexpr std::chrono::minutes to_save{30};  // or to read what was saved, without progress

/// What a rank has been asked for, as numbers that can be summed over ranks.
enum Vote : std::size_t { due, room, terminate, interrupt, votes };

std::array<double, votes> own_votes(bool is_due, const StopRequests& requests) {
  std::array<double, votes> own{};
  own[due] = is_due ? 1 : 0;
  own[room] = requests.checkpoint() ? 1 : 0;
  own[terminate] = requests.end() == SIGTERM ? 1 : 0;
  own[interrupt] = requests.end() == SIGINT ? 1 : 0;
  return own;
}

/// The code of a run that was asked to end after a step; nothing: it was not.
std::optional<Exit> asked_to_end(const std::array<double, votes>& all, bool saves) {
  if (all[interrupt] > 0) return Exit::interrupted;
  if (all[terminate] > 0) return saves ? Exit::requeue : Exit::terminated;
  if (all[room] > 0) return Exit::requeue;
  return std::nullopt;
}

}  // namespace

SessionCheckpoints::SessionCheckpoints(const models::Question& question,
                                       const SessionOptions& options, const TokenSource& tokens,
                                       RankSession& session)
    : question_{question},
      options_{options},
      session_{session},
      first_{session.placed().rank == 0},
      data_{tokens.digest()},
      interval_{options.checkpoint_every, Clock::now()} {
  if (!options.checkpoint) return;
  if (first_) lock_.emplace(*options.checkpoint);
  // Two runs never write there at once: the others try the folder once rank 0 has locked it.
  session.barrier("checkpoint folder locked");
  try_folder(*options.checkpoint, session.placed().rank);
}

Checkpoints SessionCheckpoints::of(const Runner& runner) const {
  const models::Plan& plan = question_.plan;
  std::vector<std::pair<std::string, std::string>> inputs{
      {"data", data_},
      {"global_batch", std::to_string(plan.batch.global)},
      {"seq_len", std::to_string(plan.batch.seq_len)},
      {"precision", std::string{models::name(plan.formats.precision)}}};
  // A checkpoint has trained parameters only: frozen ones must come from the same source again.
  if (!runner.layout().frozen_tensors().empty())
    inputs.emplace_back("init", options_.initial.value_or("seed"));
  return {{.folder = *options_.checkpoint,
           .rank = session_.placed().rank,
           .ranks = session_.placed().ranks,
           .barrier = [this](const std::string& name) { session_.barrier(name); },
           .alive = [this] { session_.watchdog().alive(); },
           .note =
               [this](const std::string& what) {
                 if (first_) session_.note(printable(what));
               }},
          {.model = question_.model.name,
           .tensors = runner.layout().tensors(),
           .format = runner.weights().formats().state,
           .seed = options_.seed,
           .inputs = std::move(inputs),
           .changed = options_.resume_changed ? Changed::accepted : Changed::refused}};
}

/// Restores a checkpoint on this rank; returns why it cannot be read, or an empty string.
std::string SessionCheckpoints::restored(Runner& runner, std::int64_t steps) const {
  try {
    of(runner).restore(state_of(runner), steps);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Rank 0 looks for the newest checkpoint, so that all read the same one; one that any rank finds
/// damaged is passed over.
std::int64_t SessionCheckpoints::resume(Runner& runner) {
  if (!options_.checkpoint) return 0;
  session_.does("its checkpoint", to_save);
  Store& store = session_.store();
  std::string damage;
  for (std::int64_t before = std::numeric_limits<std::int64_t>::max();;) {
    const std::string key = fmt::format("resume before {}", before);
    if (first_) {
      const auto found = of(runner).newest(before);
      if (!found && !damage.empty()) throw InputError{damage};
      store.set(key, std::to_string(found ? found->steps : 0));
    }
    const std::int64_t steps = store.get_number(key, for_a_rank);
    if (steps == 0) return 0;
    const std::string own = restored(runner, steps);
    if (!own.empty()) store.first("damage " + key, own);
    std::array<double, 1> failed{own.empty() ? 0.0 : 1.0};
    session_.sum(failed);
    if (failed[0] == 0) {
      runner.finish_loading(steps);
      done_ = steps;
      kept_ = steps;
      if (first_) session_.note(fmt::format("resuming from step {}", steps));
      return steps;
    }
    damage = store.get("damage " + key, for_a_rank);
    if (first_) session_.note(printable(damage));
    before = steps;
  }
}

void SessionCheckpoints::save(Runner& runner, const InstructionLimits& limits) {
  const auto begin = Clock::now();
  session_.does("its checkpoint", to_save);
  of(runner).save(state_of(runner), done_);
  session_.steps(runner, limits);
  interval_.saved(begin, Clock::now());
  kept_ = done_.load();
}

void SessionCheckpoints::after_step(Runner& runner, const InstructionLimits& limits,
                                    std::int64_t done) {
  done_ = done;
  // Rank 0's clock decides for all ranks.
  const bool is_due = first_ && interval_.due(done, Clock::now());
  std::array<double, votes> all = own_votes(is_due, session_.requests());
  session_.sum(all);
  const auto ends = asked_to_end(all, options_.checkpoint.has_value());
  const bool wanted = ends || all[due] > 0 || done == options_.steps;
  if (options_.checkpoint && wanted) save(runner, limits);
  if (!ends || done == options_.steps) return;
  throw RunFailure{*ends, options_.checkpoint
                              ? fmt::format("a checkpoint was written after {} steps", done)
                              : fmt::format("ended after {} steps", done)};
}

std::string SessionCheckpoints::loss() const {
  const std::int64_t kept = kept_, steps = done_ - kept;
  if (steps <= 0) return {};
  const char* const lost = steps == 1 ? "step is" : "steps are";
  if (!options_.checkpoint)
    return fmt::format("{} {} lost: --checkpoint was not given", steps, lost);
  if (kept == 0) return fmt::format("{} {} lost: no checkpoint was written yet", steps, lost);
  return fmt::format("{} {} lost: the newest checkpoint is from step {}", steps, lost, kept);
}

}  // namespace orrery::executor
