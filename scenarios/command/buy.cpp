// orrery buy: on which clusters a model trains, for how many days and dollars.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/progress.hpp"
#include "scenarios/command/search_flags.hpp"
#include "scenarios/search/purchase_report.hpp"
#include "scenarios/search/query.hpp"
#include "scenarios/tokens.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Tokens of a step where nobody says: 4M, as LLaMA was trained (Touvron et al. 2023, arXiv
/// 2302.13971, section 2.3).
constexpr std::int64_t usual_step_tokens = std::int64_t{1} << 22;

struct BuyFlags : SearchFlags {
  std::string tokens;
  std::optional<std::string> deadline, budget;
  std::optional<std::int64_t> global_batch, seq_len;
  std::vector<std::string> nodes;
};

template <class Quantity>
std::optional<Quantity> quantity_flag(const char* flag, const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const std::optional<Quantity> found = parse_quantity<Quantity>(*text);
  if (!found || found->count() <= 0) {
    throw InputError{flag,
                     fmt::format("expected {}, found '{}'", expected_form<Quantity>(), *text)};
  }
  return found;
}

/// The node types asked for, all without a wish.
std::vector<Rental> rentals_of(const BuyFlags& flags) {
  const std::vector<Rental> known = rentals();
  if (flags.nodes.empty()) return known;
  std::vector<Rental> chosen;
  for (const std::string& name : flags.nodes) {
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Rental& each) { return each.node == name; });
    if (found == known.end()) {
      std::string names;
      for (const Rental& each : known) names += " " + each.node;
      throw InputError{"--nodes", fmt::format("no rental price for '{}'; known:{}", name, names)};
    }
    chosen.push_back(*found);
  }
  return chosen;
}

PurchaseQuery query_of(const BuyFlags& flags, std::vector<std::string>& assumptions) {
  PurchaseQuery query;
  query.model = read_model_flag(flags.model);
  if (query.model.not_simulated) throw InputError{"--model", *query.model.not_simulated};
  query.software = read_software_flag(flags.software.value_or(usual_software));
  if (!flags.software) {
    assumptions.push_back(fmt::format("/software: {} taken as default", usual_software));
  }
  const auto tokens = parse_tokens(flags.tokens);
  if (!tokens) {
    throw InputError{"--tokens", fmt::format("expected {}, found '{}'", tokens_form, flags.tokens)};
  }
  query.tokens = *tokens;
  query.precision = read_precision_flag(flags.precision);
  query.deadline = quantity_flag<Time>("--deadline", flags.deadline);
  query.budget = quantity_flag<Money>("--budget", flags.budget);
  if (!flags.seq_len && query.model.max_positions < 1) {
    throw InputError{"--seq-len", "missing, and the model states no longest sequence"};
  }
  query.seq_len = flags.seq_len.value_or(query.model.max_positions);
  if (!flags.seq_len) {
    assumptions.push_back(fmt::format("--seq-len: {}, the model's longest", query.seq_len));
  }
  query.global_batch =
      flags.global_batch.value_or(std::max<std::int64_t>(1, usual_step_tokens / query.seq_len));
  if (!flags.global_batch) {
    assumptions.push_back(
        fmt::format("--global-batch: {} sequences, 4M tokens a step as LLaMA "
                    "(Touvron et al. 2023)",
                    query.global_batch));
  }
  query.rentals = rentals_of(flags);
  return query;
}

int buy(const BuyFlags& flags) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::vector<std::string> assumptions = purchase_assumptions();
  const PurchaseQuery query = query_of(flags, assumptions);
  const Watch watch;
  const PurchaseAnswer answer =
      search_purchases(query, {flags.threads, watched_progress("clusters")});
  const PurchaseReport report{
      .query = query,
      .answer = answer,
      .assumptions = std::move(assumptions),
      .model = flags.model,
      .software = flags.software.value_or(""),
      .top = flags.top,
      .wall_seconds = std::chrono::duration<double>(Clock::now() - begin).count()};
  flags.print(report);
  if (answer.stopped) return exit_interrupted;
  return answer.meeting() > 0 ? exit_done : exit_answer_is_no;
}

}  // namespace

void add_buy(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("buy", "Rank clusters to rent by days and dollars");
  const auto flags = std::make_shared<BuyFlags>();
  constexpr std::int64_t most = std::int64_t{1} << 30;
  flags->add_to(command, "clusters");
  command.add_option("--tokens", flags->tokens, "Tokens to train on, such as 300B")->required();
  command.add_option("--deadline", flags->deadline, "Longest time, such as 30d");
  command.add_option("--budget", flags->budget, "Most money, such as $5M");
  command.add_option("--global-batch", flags->global_batch, "Sequences of one step")
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option("--seq-len", flags->seq_len, "Tokens of one sequence (the model's longest)")
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option("--nodes", flags->nodes, "Node types to look at: p5,hgx-h100 (all that rent)")
      ->delimiter(',');
  command.callback([flags, &exit_code] { exit_code = buy(*flags); });
}

}  // namespace orrery::scenarios
