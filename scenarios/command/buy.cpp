// orrery buy: on which clusters a model trains, for how many days and dollars.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <iterator>
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
/// The longest sequence where nobody says: what a model is trained on for most of its tokens, as
/// Llama 3 (Grattafiori et al. 2024, arXiv 2407.21783, section 3.4.1), however long a context it is
/// made for at the end.
constexpr std::int64_t usual_sequence = 8192;

/// A power of two, so that any usual number of data-parallel ranks divides it.
std::int64_t usual_batch(std::int64_t seq_len) {
  const auto sequences = std::max<std::int64_t>(1, usual_step_tokens / seq_len);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(sequences)));
}

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
  const std::vector<Rental> known = hardware::rentals();
  if (flags.nodes.empty()) return known;
  std::vector<Rental> chosen;
  for (const std::string& name : flags.nodes) {
    const std::size_t before = chosen.size();
    std::copy_if(known.begin(), known.end(), std::back_inserter(chosen),
                 [&](const Rental& each) { return each.node == name; });
    if (chosen.size() > before) continue;
    std::string names;
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (i == 0 || known[i].node != known[i - 1].node) names += " " + known[i].node;
    }
    throw InputError{"--nodes", fmt::format("no rental price for '{}'; known:{}", name, names)};
  }
  return chosen;
}

/// Sequence length and batch, and what of them nobody gave.
std::string take_sizes(const BuyFlags& flags, PurchaseQuery& query) {
  std::string taken;
  if (!flags.seq_len && query.model.max_positions < 1) {
    throw InputError{"--seq-len", "missing, and the model states no longest sequence"};
  }
  query.seq_len = flags.seq_len.value_or(std::min(query.model.max_positions, usual_sequence));
  if (!flags.seq_len) {
    taken = fmt::format("--seq-len {} (the model takes up to {}), ", query.seq_len,
                        query.model.max_positions);
  }
  query.global_batch = flags.global_batch.value_or(usual_batch(query.seq_len));
  if (!flags.global_batch) {
    taken += fmt::format("--global-batch {} (a power of two, {:.3g}M tokens a step), ",
                         query.global_batch,
                         static_cast<double>(query.global_batch * query.seq_len) / (1 << 20));
  }
  return taken;
}

/// defaults  what nobody gave, as flags
PurchaseQuery query_of(const BuyFlags& flags, std::string& defaults) {
  PurchaseQuery query;
  query.model = read_model_flag(flags.model);
  if (query.model.not_simulated) throw InputError{"--model", *query.model.not_simulated};
  query.software = read_software_flag(flags.software.value_or(usual_software));
  const auto tokens = parse_tokens(flags.tokens);
  if (!tokens) {
    throw InputError{"--tokens", fmt::format("expected {}, found '{}'", tokens_form, flags.tokens)};
  }
  query.tokens = *tokens;
  query.precision = read_precision_flag(flags.precision);
  query.deadline = quantity_flag<Time>("--deadline", flags.deadline);
  query.budget = quantity_flag<Money>("--budget", flags.budget);
  query.headroom = flags.headroom_share();
  defaults = take_sizes(flags, query);
  if (!flags.software) defaults += fmt::format("--software {}, ", usual_software);
  if (!defaults.empty()) defaults.erase(defaults.size() - 2);
  query.rentals = rentals_of(flags);
  return query;
}

int buy(const BuyFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::string> assumptions = purchase_assumptions();
  std::string defaults;
  const PurchaseQuery query = query_of(flags, defaults);
  if (!defaults.empty()) assumptions.push_back("taken as default: " + defaults);
  const Watch watch;
  const PurchaseAnswer answer =
      search_purchases(query, {flags.threads, watched_progress("clusters")});
  const PurchaseReport report{.query = query,
                              .answer = answer,
                              .assumptions = std::move(assumptions),
                              .model = flags.model,
                              .software = flags.software.value_or(""),
                              .top = flags.top,
                              .defaults = std::move(defaults)};
  flags.print(report, begin);
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
  command
      .add_option("--seq-len", flags->seq_len,
                  "Tokens of one sequence (the model's longest up to 8192)")
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option("--nodes", flags->nodes, "Node types to look at: p5,hgx-h100 (all that rent)")
      ->delimiter(',');
  command.callback([flags, &exit_code] { exit_code = buy(*flags); });
}

}  // namespace orrery::scenarios
