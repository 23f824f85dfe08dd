#include "scenarios/question/purchase_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <set>

#include "scenarios/search/query.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Tokens per step if no batch is given: 4M, as LLaMA was trained (Touvron et al. 2023, arXiv
/// 2302.13971, section 2.3).
constexpr std::int64_t usual_step_tokens = std::int64_t{1} << 22;
/// The longest default sequence: the length at which a model is trained for most of its tokens, as
/// Llama 3 was (Grattafiori et al. 2024, arXiv 2407.21783, section 3.4.1), even if a final phase
/// extends its context.
constexpr std::int64_t usual_sequence = 8192;

/// A power of two, so that any usual number of data-parallel ranks divides it.
std::int64_t usual_batch(std::int64_t seq_len) {
  const auto sequences = std::max<std::int64_t>(1, usual_step_tokens / seq_len);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(sequences)));
}

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

/// The rented node types asked for, or all of them.
std::vector<Rental> rentals_of(const PurchaseRequest& request) {
  const std::vector<Rental> known = hardware::rentals();
  if (request.nodes.empty()) return known;
  std::vector<Rental> chosen;
  for (const std::string& name : request.nodes) {
    const std::size_t before = chosen.size();
    std::ranges::copy_if(known, std::back_inserter(chosen),
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

/// Fills in sequence length and batch; returns the flags that were not given, with their values.
std::string take_sizes(const PurchaseRequest& request, PurchaseQuery& query) {
  std::string taken;
  if (!request.seq_len && query.plan.model.max_positions < 1) {
    throw InputError{"--seq-len", "missing, and the model does not state its longest sequence"};
  }
  query.plan.seq_len =
      request.seq_len.value_or(std::min(query.plan.model.max_positions, usual_sequence));
  if (!request.seq_len) {
    taken = fmt::format("--seq-len {} (the model supports up to {}), ", query.plan.seq_len,
                        query.plan.model.max_positions);
  }
  query.plan.global_batch = request.global_batch.value_or(usual_batch(query.plan.seq_len));
  if (!request.global_batch) {
    taken += fmt::format(
        "--global-batch {} (a power of two, {:.3g}M tokens a step), ", query.plan.global_batch,
        static_cast<double>(query.plan.global_batch * query.plan.seq_len) / (1 << 20));
  }
  return taken;
}

/// defaults  receives the flags that were not given
PurchaseQuery query_of(const PurchaseRequest& request, std::string& defaults) {
  PurchaseQuery query;
  query.plan.model = read_model_flag(request.model);
  if (query.plan.model.not_simulated) throw InputError{"--model", *query.plan.model.not_simulated};
  query.plan.software = read_software_flag(request.software.value_or(usual_software));
  query.tokens = read_tokens_flag(request.tokens);
  query.plan.precision = read_precision_flag(request.precision);
  query.deadline = quantity_flag<Time>("--deadline", request.deadline);
  query.budget = quantity_flag<Money>("--budget", request.budget);
  if (request.headroom) query.plan.headroom = *request.headroom;
  defaults = take_sizes(request, query);
  if (!request.software) defaults += fmt::format("--software {}, ", usual_software);
  if (!defaults.empty()) defaults.erase(defaults.size() - 2);
  query.rentals = rentals_of(request);
  return query;
}

}  // namespace

PurchaseReport PurchaseSurvey::report() const {
  return {.query = query,
          .answer = answer,
          .assumptions = assumptions,
          .model = model,
          .software = software,
          .top = top,
          .defaults = defaults};
}

namespace {

/// Adds the recipe settings that the choices' plans took as assumptions, each once with its node
/// types.
void add_recipes_taken(PurchaseSurvey& made) {
  std::map<std::string, std::set<std::string>> nodes;
  for (const PurchaseChoice& each : made.answer.choices) {
    for (const std::string& taken : each.taken) nodes[taken].insert(each.rental.node);
  }
  for (const auto& [taken, on] : nodes) {
    made.assumptions.push_back(fmt::format("plans on {}: {}", fmt::join(on, ", "), taken));
  }
}

}  // namespace

PurchaseSurvey survey(const PurchaseRequest& request, const Progress& progress) {
  PurchaseSurvey made{.assumptions = purchase_assumptions(),
                      .model = request.model,
                      .software = request.software.value_or(""),
                      .top = request.top};
  made.query = query_of(request, made.defaults);
  if (!made.defaults.empty()) made.assumptions.push_back("not stated, assumed: " + made.defaults);
  made.answer = search_purchases(made.query, {request.threads, progress});
  add_recipes_taken(made);
  return made;
}

}  // namespace orrery::scenarios
