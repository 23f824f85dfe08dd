#include "scenarios/question/purchase_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <map>
#include <set>

#include "hardware/entries.hpp"
#include "hardware/own_file.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/scaling/scaling.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/limits.hpp"
#include "scenarios/search/query.hpp"
#include "sim/input/text.hpp"
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

/// The value of a flag, if it is given. Errors  `FLAG: expected FORM, found 'x'`
template <class Parse>
auto parsed_flag(const char* flag, const std::optional<std::string>& text, Parse parse,
                 std::string_view form) -> decltype(parse(*text)) {
  if (!text) return std::nullopt;
  if (const auto found = parse(*text)) return found;
  throw InputError{flag, fmt::format("expected {}, found '{}'", form, printable(*text, 60))};
}

/// Node types that an offer names, by name: in sizes that are rented together, or in all if none
/// is.
std::vector<SoughtNode> offered_nodes() {
  std::vector<SoughtNode> found;
  for (const hardware::Rental& each : hardware::rentals()) {
    const bool never_whole = each.most_nodes == 0;
    if (!found.empty() && found.back().name == each.node) continue;
    found.push_back({each.node, {{"node", each.node}}, never_whole});
  }
  return found;
}

/// A file of a node, or of a cluster whose number of nodes is varied.
SoughtNode node_of_file(const std::string& path) {
  const std::string flag = "--nodes";
  const Json name = path;
  const auto file = hardware::own_file(Node{name, flag, ""});
  const bool cluster = file && file->root().has("node");
  return {path, {{cluster ? "like" : "node", path}}, true};
}

SoughtNode named_node(const std::string& name) {
  if (is_path(name)) return node_of_file(name);
  if (hardware::find_entry(hardware::EntryKind::node, name)) return {name, {{"node", name}}, true};
  throw InputError{"--nodes", hardware::unknown_entry(hardware::EntryKind::node, name)};
}

/// The node types asked for, or all that are offered. A mistake in a file is reported there.
std::vector<SoughtNode> nodes_of(const PurchaseRequest& request) {
  if (request.nodes.empty()) return offered_nodes();
  std::vector<SoughtNode> chosen;
  for (const std::string& name : request.nodes) {
    chosen.push_back(named_node(name));
    chosen.back().of_nodes(1);
  }
  return chosen;
}

/// Fills in sequence length and batch; returns the flags that were not given, with their values.
std::string take_sizes(const PurchaseRequest& request, PurchaseQuery& query) {
  std::string taken;
  if (!request.seq_len && query.plan.model.embedding.max_positions < 1) {
    throw InputError{"--seq-len", "missing, and the model does not state its longest sequence"};
  }
  query.plan.seq_len =
      request.seq_len.value_or(std::min(query.plan.model.embedding.max_positions, usual_sequence));
  if (!request.seq_len) {
    taken = fmt::format("--seq-len {} (the model supports up to {}), ", query.plan.seq_len,
                        query.plan.model.embedding.max_positions);
  }
  query.plan.global_batch = request.global_batch.value_or(usual_batch(query.plan.seq_len));
  if (!request.global_batch) {
    taken += fmt::format(
        "--global-batch {} (a power of two, {:.3g}M tokens a step), ", query.plan.global_batch,
        static_cast<double>(query.plan.global_batch * query.plan.seq_len) / (1 << 20));
  }
  return taken;
}

/// The node type that a quote names: as it is listed, or by its file without folder and ending.
/// Errors  `--quote: 'x' is none of the node types considered: ...`
std::string sought_name(const std::string& name, const std::vector<SoughtNode>& nodes) {
  std::string known;
  for (const SoughtNode& each : nodes) {
    const bool by_file = is_path(each.name) && std::filesystem::path{each.name}.stem() == name;
    if (each.name == name || by_file) return each.name;
    known += (known.empty() ? "" : " ") + each.name;
  }
  throw InputError{"--quote", fmt::format("'{}' is none of the node types considered: {}",
                                          printable(name, 60), known)};
}

/// How clusters are paid for.
void take_prices(const PurchaseRequest& request, PurchaseQuery& query) {
  const Payment payment = parse_term(request.term);
  std::vector<Quote> quotes;
  for (const std::string& text : request.quotes) {
    quotes.push_back(parse_quote(text));
    std::string& name = quotes.back().node;
    if (!name.empty()) name = sought_name(name, query.nodes);
  }
  for (SoughtNode& each : query.nodes) {
    each.payment = payment;
    each.quotes = quotes;
    // What is owned, reserved or quoted is not bound to what an offer rents together.
    if (payment.term != Term::on_demand || !quotes.empty()) each.every_size = true;
  }
}

/// defaults  receives the flags that were not given
PurchaseQuery query_of(const PurchaseRequest& request, std::string& defaults) {
  PurchaseQuery query;
  query.plan.model = read_model_flag(request.model);
  if (query.plan.model.not_simulated) throw InputError{"--model", *query.plan.model.not_simulated};
  query.plan.software = read_software_flag(request.software.value_or(usual_software));
  query.tokens = read_tokens_flag(request.tokens);
  query.plan.precision = read_precision_flag(request.precision);
  query.deadline_days = parsed_flag("--deadline", request.deadline, parse_days, days_form);
  query.budget = parsed_flag("--budget", request.budget, parse_dollars, dollars_form);
  if (request.headroom) query.plan.headroom = *request.headroom;
  if (!(request.confidence > 0 && request.confidence < 1)) {
    throw InputError{"--confidence", "expected a probability between 0 and 1 such as 0.8"};
  }
  query.confidence = request.confidence;
  if (request.gpus) query.gpus = parse_gpu_counts(*request.gpus);
  defaults = take_sizes(request, query);
  if (!request.software) defaults += fmt::format("--software {}, ", usual_software);
  if (!defaults.empty()) defaults.erase(defaults.size() - 2);
  query.nodes = nodes_of(request);
  if (request.data) {
    // Nodes to rent were not measured.
    query.plan.data = data_from_flag("--data", *request.data, Json::object(), query.plan.seq_len,
                                     query.plan.data_assumptions);
  }
  if (request.between) query.zones = read_zones_flag(*request.between);
  take_prices(request, query);
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
    for (const std::string& taken : each.taken) nodes[taken].insert(each.node);
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
  for (const std::string& text : request.quotes) {
    if (const auto asked = doubt(parse_quote(text))) made.assumptions.push_back(*asked);
  }
  for (const std::string& each : sizes_rounded_up(made.query)) {
    made.assumptions.push_back(fmt::format("--gpus {}, the next whole number of nodes", each));
  }
  if (made.query.zones) {
    made.assumptions.push_back(fmt::format(
        "--between: nodes in {} equal zones; gradients cross at {} after backward of every step, "
        "and plans are chosen without it",
        made.query.zones->zones, format(made.query.zones->between.bandwidth)));
  }
  if (request.term == word_of(term_words, Term::mix)) {
    made.assumptions.push_back(
        fmt::format("--term mix: {} assumed ({})", words_of(parse_term(request.term)), usual_mix));
  }
  made.answer = search_purchases(made.query, {request.threads, progress});
  add_recipes_taken(made);
  if (made.query.plan.data && !made.answer.choices.empty()) {
    const std::vector<std::string>& of_data = made.answer.choices.front().data_assumptions;
    made.assumptions.insert(made.assumptions.end(), of_data.begin(), of_data.end());
  }
  return made;
}

}  // namespace orrery::scenarios
