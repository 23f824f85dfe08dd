#include "scenarios/fitting/prior_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "scenarios/validation/statistics.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

namespace {

/// A number's field in a site's entry, and a step that would determine the number.
struct ShownNumber {
  const char* pointer;
  const char* site_key;  // empty: the number depends on the stack only
  const char* steps;     // a step that would determine it
};

constexpr ShownNumber shown[] = {
    {"/host/forward_launch", "", "a step of micro-batch 1 on one GPU, where the host is the limit"},
    {"/host/backward_launch", "", "a step of micro-batch 1 on one GPU without recomputation"},
    {"/host/communication_launch", "", "a step of micro-batch 1 with tensor parallelism in a node"},
    {"/host/jitter", "jitter", "the same plan with twice the tensor-parallel ranks"},
    {"/host/step", "step", "the same plan with half the global batch"},
    {"/kernels/gemm_derate/default", "clock",
     "a step of one GPU with long sequences or large hidden"},
    {"/kernels/memory_derate", "", "the same plan with another hidden size"},
    {"/kernels/attention_derate", "", "the same tokens in longer sequences"},
    {"/kernels/loss_forward_bytes", "", "the same model with fewer layers"},
    {"/kernels/accumulate_derate", "", "the same global batch in larger micro-batches"},
    {"/kernels/accumulate_exposed", "", "the same global batch in larger micro-batches"},
    {"/overlap/tensor_exposed", "tensor", "the same model with half the tensor-parallel ranks"},
    {"/overlap/data_efficiency", "network", "the same plan with twice the replicas"},
    {"/overlap/data_exposed", "", "the same replicas with half the global batch"},
};

const ShownNumber& shown_by(const std::string& pointer) {
  const auto* const found = std::ranges::find(shown, pointer, &ShownNumber::pointer);
  ensure(found != std::end(shown), "every inherited number is shown by some step");
  return *found;
}

/// Root mean square over rows of the change of ln(step) by one spread of the number.
double effect_of(const LinearRows& rows, std::size_t number, double spread) {
  double sum = 0;
  for (const std::vector<double>& each : rows.slopes) {
    sum += each[number] * spread * each[number] * spread;
  }
  return std::sqrt(sum / static_cast<double>(rows.slopes.size()));
}

/// The site entry that changes the parent's numbers on a neutral cluster into the fitted ones.
Json site_of(const std::vector<FittedPriorNumber>& numbers) {
  Json site{{"name", "yours"}};
  for (const FittedPriorNumber& each : numbers) {
    const InheritedNumber& number = inherited_numbers()[each.number];
    const std::string key = shown_by(number.pointer).site_key;
    if (key.empty()) continue;
    if (number.differs == Differs::by_amount) {
      const double more = std::max(0.0, each.value - each.prior);
      if (more > 0) site[key] = number.written(more);
      continue;
    }
    const double factor = each.value / each.prior;
    site[key] = std::round(1000 * (key == "clock" ? 1 / factor : factor)) / 1000;
  }
  return site;
}

/// The step to measure next: one that determines the number whose remaining spread changes these
/// steps most (the first number if none does).
std::string next_of(const std::vector<FittedPriorNumber>& numbers) {
  const auto most = std::ranges::max_element(numbers, {}, &FittedPriorNumber::effect);
  const std::string& pointer = inherited_numbers()[most->number].pointer;
  return fmt::format(
      "{}: its uncertainty changes these steps by {:.1f} %; it can be measured on {}", pointer,
      100 * most->effect, shown_by(pointer).steps);
}

/// ln(measured / predicted) of the rows by a profile as it is written, with its rounded numbers.
std::vector<double> errors_of_profile(std::vector<BenchRow> rows, const Json& profile,
                                      unsigned threads) {
  const Document document = Document::from(profile, "fitted");
  std::vector<std::size_t> all(rows.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const models::Software software = models::read_software(document.root());
  for (BenchRow& each : rows) each.question.software = software;
  const StackFit fit{std::move(rows), std::vector<std::size_t>(all.size(), 0), software, threads};
  return fit.errors(all, coordinates_of(software));
}

Json uncertainty_of(const PriorFit& prior_fit) {
  double variance = spread_of_rows * spread_of_rows;
  for (const FittedPriorNumber& each : prior_fit.numbers) variance += each.effect * each.effect;
  const double spread = 1.28 * std::sqrt(variance);
  const auto rounded = [](double value) { return std::round(value * 1000) / 1000; };
  return {
      {"p10", -rounded(spread)},
      {"p90", rounded(spread)},
      {"rows", prior_fit.fitted.size()},
      {"source", "orrery fit software: what is left of the numbers' spreads, and 6 % of a run"}};
}

std::string value_text(const InheritedNumber& number, double value) {
  const Json written = number.written(value);
  return written.is_string() ? written.get<std::string>()
                             : fmt::format("{:.2f}", written.get<double>());
}

/// A spread as text: "12 %", or "5 us".
std::string spread_text(const InheritedNumber& number, double spread) {
  return number.differs == Differs::by_factor ? fmt::format("{:.0f} %", 100 * std::expm1(spread))
                                              : value_text(number, spread);
}

/// Adds to the profile, as it is written, what its numbers leave of the rows.
void add_unexplained(const std::vector<BenchRow>& rows, unsigned threads, PriorFit& prior_fit) {
  const std::vector<double> errors = errors_of_profile(rows, prior_fit.profile, threads);
  prior_fit.profile["unexplained"] = unexplained_by(errors);
  prior_fit.factor = std::log(prior_fit.profile["unexplained"].get<double>());
  for (const double each : errors) prior_fit.fitted.push_back(prior_fit.factor - each);
}

}  // namespace

double unexplained_by(std::vector<double> errors) {
  constexpr double half_at = 1.4;  // rows
  const auto rows = static_cast<double>(errors.size());
  const double factor = quantile(std::move(errors), 0.5) * rows / (rows + half_at);
  return std::round(1000 * std::exp(factor)) / 1000;
}

PriorFit prior_fit_of(std::vector<BenchRow> rows, Json profile, unsigned threads) {
  std::vector<std::size_t> all(rows.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  const models::Software parent = models::read_software(Document::from(profile, "parent").root());
  for (BenchRow& each : rows) each.question.software = parent;
  const StackFit fit{rows, std::vector<std::size_t>(all.size(), 0), parent, threads};
  const std::vector<double> prior = coordinates_of(parent);
  const FittedStack found = fit.fit(all, prior);
  const LinearRows there = fit.rows_at(all, found.coordinates);
  PriorFit prior_fit;
  for (std::size_t k = 0; k < prior.size(); ++k) {
    const InheritedNumber& number = inherited_numbers()[k];
    if (!number.matters(parent)) continue;
    prior_fit.numbers.push_back({.number = k,
                                 .prior = number.value(prior[k]),
                                 .value = number.value(found.coordinates[k]),
                                 .spread_before = number.spread,
                                 .spread_left = found.spreads[k],
                                 .effect = effect_of(there, k, found.spreads[k])});
  }
  for (const double each : fit.errors(all, prior)) prior_fit.at_prior.push_back(-each);
  prior_fit.site = site_of(prior_fit.numbers);
  prior_fit.next = next_of(prior_fit.numbers);
  prior_fit.profile =
      with_inherited(std::move(profile), with_moved(parent, prior, found.coordinates));
  add_unexplained(rows, threads, prior_fit);
  prior_fit.profile["uncertainty"] = uncertainty_of(prior_fit);
  return prior_fit;
}

Json to_json(const PriorFit& prior_fit) {
  Json numbers = Json::array();
  for (const FittedPriorNumber& each : prior_fit.numbers) {
    const InheritedNumber& number = inherited_numbers()[each.number];
    numbers.push_back({{"pointer", number.pointer},
                       {"parent", number.written(each.prior)},
                       {"fitted", number.written(each.value)},
                       {"spread_before", each.spread_before},
                       {"spread_left", each.spread_left},
                       {"effect_pct", 100 * each.effect}});
  }
  return {{"numbers", numbers},
          {"site", prior_fit.site},
          {"factor_not_expressed", std::exp(prior_fit.factor)},
          {"measure_next", prior_fit.next}};
}

std::string text_of(const PriorFit& prior_fit) {
  std::string text =
      fmt::format("  your site, as a cluster's \"site\": {}\n", prior_fit.site.dump());
  text += fmt::format("  {:<30} {:>10} {:>10} {:>9} {:>9}   uncertainty of these steps\n", "number",
                      "parent's", "now", "spread", "left");
  for (const FittedPriorNumber& each : prior_fit.numbers) {
    const InheritedNumber& number = inherited_numbers()[each.number];
    text += fmt::format("  {:<30} {:>10} {:>10} {:>9} {:>9}   {:.1f} %\n", number.pointer,
                        value_text(number, each.prior), value_text(number, each.value),
                        spread_text(number, each.spread_before),
                        spread_text(number, each.spread_left), 100 * each.effect);
  }
  text += fmt::format("  unexplained: {:+.1f} % of each step, in the profile's predictions{}\n",
                      100 * std::expm1(prior_fit.factor),
                      prior_fit.factor == 0 ? "" : ", not in those of the site alone");
  return text + fmt::format("  measure next  {}\n", prior_fit.next);
}

}  // namespace orrery::scenarios
