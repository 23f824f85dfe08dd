#include "scenarios/command/execute_saving.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>

#include "executor/errors.hpp"
#include "executor/launch/signals.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

using executor::Clock;
using executor::Exit;
using executor::RunFailure;
using executor::SignalWishes;

namespace {

constexpr std::chrono::minutes for_an_answer{5};
constexpr std::chrono::minutes to_save{30};  // or to read what was saved, without a sign of life

/// What a rank has been asked for, as numbers that can be added up.
enum Vote : std::size_t { due, room, terminate, interrupt, votes };

std::array<double, votes> own_votes(bool is_due) {
  std::array<double, votes> own{};
  own[due] = is_due ? 1 : 0;
  own[room] = SignalWishes::checkpoint() ? 1 : 0;
  own[terminate] = SignalWishes::end() == SIGTERM ? 1 : 0;
  own[interrupt] = SignalWishes::end() == SIGINT ? 1 : 0;
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

Saving::Saving(const models::Question& question, const ExecuteOptions& options,
               const executor::TokenSource& tokens, Meeting& meeting)
    : question_{question},
      options_{options},
      meeting_{meeting},
      first_{meeting.placed().rank == 0},
      data_{tokens.digest()},
      interval_{options.checkpoint_every, Clock::now()} {
  if (!options.checkpoint) return;
  if (first_) lock_.emplace(*options.checkpoint);
  executor::try_folder(*options.checkpoint, meeting.placed().rank);
}

executor::Checkpoints Saving::of(const executor::Runner& runner) const {
  const models::Plan& plan = question_.plan;
  return {{.folder = *options_.checkpoint,
           .rank = meeting_.placed().rank,
           .ranks = meeting_.placed().ranks,
           .barrier = [this](const std::string& name) { meeting_.barrier(name); },
           .alive = [this] { meeting_.watchdog().alive(); },
           .note =
               [this](const std::string& what) {
                 if (first_) fmt::print(stderr, "{}\n", printable(what));
               }},
          {.model = question_.model.name,
           .tensors = runner.state_tensors(),
           .format = runner.state_format(),
           .seed = options_.seed,
           .inputs = {{"data", data_},
                      {"global_batch", std::to_string(plan.global_batch)},
                      {"seq_len", std::to_string(plan.seq_len)},
                      {"precision", std::string{models::name(plan.precision)}}},
           .changed =
               options_.resume_changed ? executor::Changed::accepted : executor::Changed::refused}};
}

/// Why a checkpoint cannot be read here; empty: it has been.
std::string Saving::restored(executor::Runner& runner, std::int64_t steps) const {
  try {
    of(runner).restore(state_of(runner), steps);
    return {};
  } catch (const InputError& error) {
    return error.what();
  }
}

/// Rank 0 looks which checkpoint is the newest, so that all take the same; one that some rank finds
/// damaged is none.
std::int64_t Saving::resume(executor::Runner& runner) {
  if (!options_.checkpoint) return 0;
  meeting_.does("its checkpoint", to_save);
  executor::Store& store = meeting_.store();
  std::string damage;
  for (std::int64_t before = std::numeric_limits<std::int64_t>::max();;) {
    const std::string key = fmt::format("resume before {}", before);
    if (first_) {
      const auto found = of(runner).newest(before);
      if (!found && !damage.empty()) throw InputError{damage};
      store.set(key, std::to_string(found ? found->steps : 0));
    }
    const std::int64_t steps = store.get_number(key, for_an_answer);
    if (steps == 0) return 0;
    const std::string own = restored(runner, steps);
    if (!own.empty()) store.first("damage " + key, own);
    std::array<double, 1> failed{own.empty() ? 0.0 : 1.0};
    meeting_.sum(failed);
    if (failed[0] == 0) {
      runner.finish_loading(steps);
      done_ = steps;
      kept_ = steps;
      if (first_) fmt::print(stderr, "going on from step {}\n", steps);
      return steps;
    }
    damage = store.get("damage " + key, for_an_answer);
    if (first_) fmt::print(stderr, "{}\n", printable(damage));
    before = steps;
  }
}

void Saving::save(executor::Runner& runner, const executor::InstructionLimits& limits) {
  const auto begin = Clock::now();
  meeting_.does("its checkpoint", to_save);
  of(runner).save(state_of(runner), done_);
  meeting_.steps(runner, limits);
  interval_.saved(begin, Clock::now());
  kept_ = done_.load();
}

void Saving::after_step(executor::Runner& runner, const executor::InstructionLimits& limits,
                        std::int64_t done) {
  done_ = done;
  // Rank 0's clock is everybody's.
  std::array<double, votes> all = own_votes(first_ && interval_.due(done, Clock::now()));
  meeting_.sum(all);
  const auto ends = asked_to_end(all, options_.checkpoint.has_value());
  const bool wanted = ends || all[due] > 0 || done == options_.steps;
  if (options_.checkpoint && wanted) save(runner, limits);
  if (!ends || done == options_.steps) return;
  throw RunFailure{*ends, options_.checkpoint
                              ? fmt::format("a checkpoint of {} steps is written", done)
                              : fmt::format("ends after {} steps", done)};
}

std::string Saving::loss() const {
  const std::int64_t kept = kept_, steps = done_ - kept;
  if (steps <= 0) return {};
  const char* const lost = steps == 1 ? "step is" : "steps are";
  if (!options_.checkpoint) return fmt::format("{} {} lost: there is no --checkpoint", steps, lost);
  if (kept == 0) return fmt::format("{} {} lost: no checkpoint was written yet", steps, lost);
  return fmt::format("{} {} lost: the newest checkpoint has {}", steps, lost, kept);
}

}  // namespace orrery::scenarios
