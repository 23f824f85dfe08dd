#include "scenarios/purchase/purchase_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hardware/entries.hpp"
#include "models/plan/fields.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "scenarios/scenario/data_section.hpp"
#include "scenarios/scenario/plan_words.hpp"
#include "scenarios/scenario/price_words.hpp"
#include "scenarios/search/comparison.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

std::string days_of(double days) {
  return days >= 10 ? fmt::format("{:.1f}", days) : fmt::format("{:.2f}", days);
}

/// "dgx-b200, hgx-b200 x 16".
std::string name_of(const PurchaseChoice& choice) {
  std::string names = choice.node;
  for (const std::string& each : choice.also) names += ", " + each;
  return fmt::format("{} x {}", names, choice.nodes);
}

/// "41.2 (36 to 48)": half of all cases, and 8 of 10.
std::string day_range_of(const PurchaseChoice& choice) {
  const std::string days = days_of(choice.days);
  if (!choice.day_range) return days;
  const char* form = choice.day_range->p90 < 10 ? "{} ({:.2f} to {:.2f})" : "{} ({:.0f} to {:.0f})";
  return fmt::format(fmt::runtime(form), days, choice.day_range->p10, choice.day_range->p90);
}

std::string dollars_of(const PurchaseChoice& choice) {
  return choice.cost ? format(*choice.cost) : "no price known";
}

std::string words_of(const PurchaseChoice& choice) {
  return fmt::format("{}: {} days, {}", name_of(choice), days_of(choice.days), dollars_of(choice));
}

}  // namespace

std::string reason_of(const PurchaseAnswer& answer) {
  if (answer.meeting() > 0) return {};
  if (answer.stopped && answer.choices.empty()) return "stopped before a cluster was found";
  const bool any_rented = std::ranges::any_of(answer.impossible, &Impossible::rented);
  if (answer.choices.empty() && !any_rented)
    return "the catalogue has no rental offer for such clusters";
  if (answer.choices.empty()) return "no cluster can train this model with this batch";
  const auto& all = answer.choices;
  const auto fastest = std::ranges::min_element(all, {}, &PurchaseChoice::days);
  const auto cheapest = std::ranges::min_element(all, {}, [](const PurchaseChoice& each) {
    return std::pair{each.price_rank(), each.cost.value_or(Money{})};
  });
  return fmt::format("no cluster meets deadline and budget; closest: {}; fastest: {}; cheapest: {}",
                     words_of(all.front()), words_of(*fastest), words_of(*cheapest));
}

std::string why_no_price(const PurchaseQuery& query, const PurchaseChoice& choice) {
  const auto node = std::ranges::find(query.nodes, choice.node, &SoughtNode::name);
  const Payment payment = node == query.nodes.end() ? Payment{} : node->payment;
  if (payment.term == Term::on_demand) return no_price_words(choice.node);
  if (payment.term == Term::mix) {
    return fmt::format("no one offer of the catalogue has {} {}; state --quote", choice.node,
                       words_of(payment));
  }
  if (payment.term == Term::own)
    return fmt::format("no purchase price of {} is known; state --quote", choice.node);
  return fmt::format("no offer of the catalogue has a price of {} on this term ({}); state --quote",
                     choice.node, word_of(term_words, payment.term));
}

std::vector<std::string> purchase_assumptions() {
  return {
      "days and dollars are of the whole run, with failures and restarts as orrery train has them "
      "by "
      "default: half of all cases; limits are kept with the probability of --confidence",
      "list prices (--term, --quote); storage, egress and negotiation are left out",
      "the price of a cluster is the lowest on-demand price of the latest year among the offers "
      "that rent as many of its nodes together, as in orrery simulate; if none does, that of the "
      "largest piece that is rented, marked ~ as an indication and ranked after the others; prices "
      "marked unconfirmed have no source",
      fmt::format("prices older than {} months are marked OLD; their age is counted to the newest "
                  "dated price of the catalogue, {}",
                  hardware::outdated_after_months, hardware::newest_offer_month()),
      "without waiting for capacity",
      fmt::format("cluster sizes are powers of two of nodes, up to {} GPUs (--gpus)",
                  most_gpus_rented),
      "plans of a reduced list: micro-batches and virtual stages 1, 2 and 4; sequence parallelism "
      "and ZeRO-1 wherever they apply, ZeRO-2 and 3 (FSDP) without a pipeline where the stack has "
      "them; orrery plan searches one cluster in full"};
}

namespace {

std::string limits(const PurchaseQuery& query) {
  std::string text;
  if (query.deadline_days) text += fmt::format(" · within {:.4g} days", *query.deadline_days);
  if (query.budget) text += fmt::format(" · for at most {}", format(*query.budget));
  return text;
}

std::string title(const PurchaseReport& report, const ReportOptions& options) {
  const PurchaseQuery& query = report.query;
  const bool trillions = query.tokens >= 1e12;
  return toned(fmt::format("Clusters to train {} on {:.4g} {} tokens", query.plan.model.name,
                           query.tokens / (trillions ? 1e12 : 1e9), trillions ? "T" : "B"),
               Tone::bold, options.colour) +
         fmt::format("\n{} sequences of {} tokens a step · {} · {}{}\n", query.plan.global_batch,
                     query.plan.seq_len, models::name(query.plan.precision),
                     query.plan.software.name, limits(query)) +
         (report.defaults.empty() ? "" : fmt::format("Not stated, assumed: {}\n", report.defaults));
}

TextTable empty_table() {
  return TextTable{
      {"#", "<cluster", "GPUs", "days", "cost", "$/GPU-h", "MFU", "memory", "<fit", "<"}};
}

void add_row(TextTable& table, const PurchaseChoice& each, const std::string& number) {
  const std::string gpus = each.idle() > 0 ? fmt::format("{} ({} idle)", each.gpus, each.idle())
                                           : fmt::format("{}", each.gpus);
  const std::string mark = each.price_rank() == 1 ? "~" : "";
  table.add({number, name_of(each), gpus, day_range_of(each),
             each.cost ? mark + format(*each.cost) : "-",
             each.price ? mark + fmt::format("{:.2f}", each.price->per_gpu_hour.count()) : "-",
             percent(each.plan.estimate.mfu), format(each.plan.estimate.memory),
             std::string{models::name(each.plan.estimate.fit)}, each.pareto ? "◆" : ""});
}

/// How many choices are shown: those that meet the limits, or else the closest ones.
std::size_t rows_of(const PurchaseReport& report) {
  const auto meeting = static_cast<std::size_t>(report.answer.meeting());
  return std::min(report.top, meeting > 0 ? meeting : report.answer.choices.size());
}

std::string ranking(const PurchaseReport& report, const ReportOptions& options) {
  const std::vector<PurchaseChoice>& choices = report.answer.choices;
  const std::int64_t meeting = report.answer.meeting();
  const bool limited = report.query.deadline_days || report.query.budget;
  std::string text =
      heading(!limited       ? fmt::format("{} cluster{}, cheapest first", choices.size(),
                                     choices.size() == 1 ? "" : "s")
              : meeting == 0 ? "No cluster meets the limits; these come closest"
                             : fmt::format("{} of {} clusters meet the limits, {} first", meeting,
                                           choices.size() + report.answer.impossible.size(),
                                           report.query.deadline_days ? "cheapest" : "fastest"),
              options);
  TextTable table = empty_table();
  for (std::size_t i = 0; i < rows_of(report); ++i) {
    add_row(table, choices[i], fmt::format("{}", i + 1));
  }
  return text + table.text(options.colour);
}

/// The whole Pareto front, the fastest first.
std::string front(const PurchaseReport& report, const ReportOptions& options) {
  std::vector<const PurchaseChoice*> order;
  for (const PurchaseChoice& each : report.answer.choices) {
    if (each.pareto) order.push_back(&each);
  }
  std::ranges::sort(
      order, [](const PurchaseChoice* a, const PurchaseChoice* b) { return a->days < b->days; });
  TextTable table = empty_table();
  for (const PurchaseChoice* each : order) add_row(table, *each, "");
  return heading("◆ No cluster is both faster and cheaper than these", options) +
         table.text(options.colour);
}

std::string idle_words(const PurchaseChoice& choice) {
  if (choice.idle() == 0) return {};
  return fmt::format(" · {} of {} GPUs idle, because no plan divides the batch over all of them",
                     choice.idle(), choice.gpus);
}

/// Prices of several providers and dates, which nobody offers side by side.
std::string mixed_prices(const PurchaseReport& report, const ReportOptions& options) {
  std::set<std::string> sources;
  for (std::size_t i = 0; i < rows_of(report); ++i) {
    const auto& price = report.answer.choices[i].price;
    if (price && price->listed) sources.insert(price->listed->provider + " " + price->listed->date);
  }
  if (sources.size() < 2) return {};
  return "\n" +
         paragraph(fmt::format("Prices are of different offers: {}. Compare quotes of one day.",
                               fmt::join(sources, ", ")),
                   2, options);
}

/// Cautions if the first choice fits tightly, and for plans of a kind that no profile is fitted to.
std::string cautions(const PurchaseReport& report, const ReportOptions& options) {
  const std::vector<PurchaseChoice>& choices = report.answer.choices;
  std::string text;
  if (choices.front().tight()) {
    text += "\n" + paragraph(fmt::format("The first choice fits tightly: it leaves less than "
                                         "{:.1f} % of the memory free (--headroom).",
                                         100 * report.query.plan.headroom),
                             2, options);
  }
  for (std::size_t i = 0; i < rows_of(report); ++i) {
    const auto note = sharded_note(choices[i].plan.placed.plan);
    if (note) return text + "\n" + paragraph(*note, 2, options);
  }
  return text;
}

/// "$12,000 of the cost for 1,200 TB between zones".
std::string transfer_words(const PurchaseChoice& choice) {
  const std::string amount =
      fmt::format("{:.4g} TB cross from zone to zone", choice.transfer_gb / 1e3);
  if (choice.transfer.count() <= 0) return amount + ": state dollars_per_gb in --between";
  return fmt::format("{}: {}{}", amount, format(choice.transfer),
                     choice.cost ? " of the cost" : "");
}

std::string plans(const PurchaseReport& report, const ReportOptions& options) {
  std::string text = heading("Plans and prices", options);
  for (std::size_t i = 0; i < rows_of(report); ++i) {
    const PurchaseChoice& each = report.answer.choices[i];
    text += fmt::format("  {:>3}  {}{}\n", i + 1, models::title_of(each.plan.placed.plan),
                        idle_words(each));
    const std::string price = each.price ? fmt::format("{}: {}", format(each.price->per_gpu_hour),
                                                       source_words(*each.price))
                                         : why_no_price(report.query, each);
    text += paragraph(toned(price, Tone::faint, options.colour), 7, options);
    const std::string waits = each.lane ? wait_words(*each.lane) : std::string{};
    if (!waits.empty()) text += paragraph(waits, 7, options);
    if (each.transfer_gb > 0) text += paragraph(transfer_words(each), 7, options);
  }
  return text;
}

const SoughtNode& sought(const PurchaseReport& report, const PurchaseChoice& choice) {
  return *std::ranges::find(report.query.nodes, choice.node, &SoughtNode::name);
}

/// The value of --cluster for a choice: a name, or of a file an object.
std::string cluster_flag(const PurchaseReport& report, const PurchaseChoice& choice) {
  const SoughtNode& node = sought(report, choice);
  if (node.cluster == Json{{"node", choice.node}} &&
      hardware::find_entry(hardware::EntryKind::node, choice.node)) {
    return fmt::format("'{} x {}'", choice.node, choice.nodes);
  }
  return fmt::format("'{}'", node.stated(choice.nodes).dump());
}

/// The command line for the best choice; for a node used in part it simulates, because `orrery
/// plan` would use all GPUs.
std::string simulate_line(const PurchaseReport& report, const PurchaseChoice& best,
                          const ReportOptions& options) {
  const hardware::NodeType node = sought(report, best).of_nodes(best.nodes).node;
  const std::int64_t used = best.plan.placed.plan.gpus() / best.nodes;
  const auto& data = report.query.plan.data;
  return heading("The best one in detail", options) +
         fmt::format(
             "  orrery simulate --model {} --cluster {} --set /cluster/node/gpus={} --set "
             "/cluster/node/nics={} --plan {}{}{}\n",
             report.model, cluster_flag(report, best), used, node.nics * used / node.gpus,
             models::to_text(best.plan.placed.plan),
             report.software.empty() ? "" : " --software " + report.software,
             data ? fmt::format(" --set '/data={}'", data->dump()) : "");
}

std::string next(const PurchaseReport& report, const ReportOptions& options) {
  const PurchaseChoice& best = report.answer.choices.front();
  if (best.idle() > 0) return simulate_line(report, best, options);
  const auto& data = report.query.plan.data;
  return heading("All plans for the first choice", options) +
         fmt::format(
             "  orrery plan --model {} --cluster {} --global-batch {} --seq-len {}"
             " --precision {}{}{}\n",
             report.model, cluster_flag(report, best), report.query.plan.global_batch,
             report.query.plan.seq_len, models::name(report.query.plan.precision),
             report.software.empty() ? "" : " --software " + report.software,
             data ? fmt::format(" --data '{}'", data->dump()) : "");
}

/// Node types of which no size works, each with the reason at its largest size.
std::string impossible(const PurchaseReport& report, const ReportOptions& options) {
  std::map<std::string, const Impossible*> nodes;
  for (const Impossible& each : report.answer.impossible) nodes[each.node] = &each;
  for (const PurchaseChoice& each : report.answer.choices) {
    nodes.erase(each.node);
    for (const std::string& other : each.also) nodes.erase(other);
  }
  if (report.answer.impossible.empty()) return {};
  std::string text = heading("Not possible", options);
  text += paragraph(
      fmt::format("{} clusters{}", report.answer.impossible.size(),
                  nodes.empty() ? "" : "; these node types at every size, shown for the largest:"),
      2, options);
  for (const auto& [node, last] : nodes) {
    text += paragraph(fmt::format("{} x {}: {}", node, last->nodes, last->reason), 4, options);
  }
  return text;
}

}  // namespace

std::string text_of(const PurchaseReport& report, const ReportOptions& options) {
  std::string text = title(report, options);
  if (report.answer.stopped) {
    text += toned("Stopped: only the clusters evaluated until then are compared", Tone::bad,
                  options.colour) +
            "\n";
  }
  const std::string reason = reason_of(report.answer);
  if (!reason.empty()) {
    text += "\n" + toned("No: ", Tone::bad, options.colour) + reason + "\n";
  }
  if (!report.answer.choices.empty()) {
    text += ranking(report, options) + mixed_prices(report, options) + cautions(report, options) +
            front(report, options) + plans(report, options) + next(report, options);
  }
  return text + impossible(report, options) + assumed_section(report.assumptions, options);
}

}  // namespace orrery::scenarios
