#include "scenarios/purchase/purchase_price.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "hardware/prices/offer.hpp"
#include "hardware/prices/rental.hpp"
#include "scenarios/topology/bill.hpp"
#include "scenarios/whole_run/run_inputs.hpp"
#include "sim/errors.hpp"
#include "sim/input/printable.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Hall and its operation over a node's life, and a switch of 64 ports of 400 Gb/s.
/// Source  "H100 Freakonomics" cost sheet, 2024-08
constexpr Money hall_per_node{50'000}, usual_switch{36'000};

std::optional<Price> price_on(const hardware::Offer& offer, Term term) {
  switch (term) {
    case Term::one_year:
      return offer.reserved_1y;
    case Term::three_years:
      return offer.reserved_3y;
    case Term::spot:
      return offer.spot;
    default:
      return offer.on_demand;
  }
}

/// Of all nodes on a term, or of the parts of a mix, which one offer must have.
std::optional<Price> price_on(const hardware::Offer& offer, const Payment& payment) {
  if (payment.term != Term::mix) return price_on(offer, payment.term);
  Price sum;
  for (const TermShare& each : payment.mix) {
    const std::optional<Price> part = price_on(offer, each.term);
    if (!part) return std::nullopt;
    sum += *part * each.share;
  }
  return sum;
}

std::string_view words_of(Term term) {
  if (term == Term::on_demand) return "on demand";
  if (term == Term::one_year) return "reserved for 1 year";
  return term == Term::three_years ? "reserved for 3 years" : "on the spot market";
}

/// Of the offers that name the node type: those of the latest year, of them the cheapest.
void put_offer(hardware::Cluster& cluster, const Payment& payment) {
  cluster.price_per_gpu_hour.reset();
  int latest = 0;
  for (const hardware::Offer& each : hardware::offers()) {
    const std::optional<Price> price = price_on(each, payment);
    const bool named = std::ranges::count(each.nodes, cluster.node.name) > 0;
    const int year = hardware::year_of(each.date);
    if (!price || !named || year < latest) continue;
    const bool later = year > latest || !cluster.price_per_gpu_hour;
    if (!later && *price >= *cluster.price_per_gpu_hour) continue;
    latest = year;
    cluster.price_per_gpu_hour = price;
    cluster.price_source =
        fmt::format("{} {}, {}, {}", each.provider, words_of(payment), each.date, each.source);
  }
}

Money switches_of(const hardware::Cluster& cluster) {
  if (cluster.nodes < 2 || cluster.node.nics < 1) return Money{};
  const Money each = cluster.fabric.leaf.purchase_price.value_or(usual_switch);
  return each * static_cast<double>(bill_of(cluster).switches.size());
}

void put_owned(hardware::Cluster& cluster) {
  cluster.price_per_gpu_hour.reset();
  if (!cluster.node.purchase_price) return;
  const double gpus = cluster.gpus(), nodes = cluster.nodes;
  OwnedGpu own;
  own.capex =
      ((*cluster.node.purchase_price + hall_per_node) * nodes + switches_of(cluster)) * (1 / gpus);
  own.kilowatts =
      (cluster.gpu().board_power.count() + cluster.node.host_power.count() / cluster.node.gpus) /
      1000;
  cluster.price_per_gpu_hour = hourly_price(own);
  cluster.price_source = fmt::format(
      "owned: {} a GPU with hall and switches, {:g} years, {:g} % left, {:g} % a year, {:.3g} kW "
      "at "
      "{:g} of it, PUE {:g}, ${:g}/kWh",
      format(own.capex), own.life_years, 100 * own.residual, 100 * own.wacc, own.kilowatts,
      own.load, own.pue, own.power_price);
}

}  // namespace

Quote parse_quote(const std::string& text) {
  const std::size_t equals = text.find('=');
  Quote quote;
  std::string_view amount{text};
  if (equals != std::string::npos) {
    quote.node = std::string{trimmed(amount.substr(0, equals))};
    amount = amount.substr(equals + 1);
  }
  amount = trimmed(amount);
  const std::string dollars =
      amount.starts_with('$') ? std::string{amount} : fmt::format("${}", amount);
  const auto price = parse_quantity<Price>(dollars);
  if (!price || price->count() <= 0) {
    throw InputError{"--quote", fmt::format("expected a price of a GPU-hour such as 2.10/h or "
                                            "p5=2.10/h, found '{}'",
                                            printable(text, 60))};
  }
  quote.price = *price;
  return quote;
}

namespace {

constexpr std::string_view term_form =
    "one of on-demand 1y 3y spot mix own, or shares that add up to 1 such as 3y=0.6,spot=0.4";

[[noreturn]] void refuse_term(const std::string& text, std::string_view why = "") {
  throw InputError{"--term",
                   fmt::format("expected {}, found '{}'{}", term_form, printable(text, 60), why)};
}

TermShare parse_share(std::string_view part, const std::string& whole) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) refuse_term(whole);
  const auto term = value_of(term_words, trimmed(part.substr(0, equals)));
  if (!term || *term == Term::mix || *term == Term::own) refuse_term(whole);
  const std::string_view number = trimmed(part.substr(equals + 1));
  TermShare share{.term = *term};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), share.share);
  const bool percent = end + 1 == number.data() + number.size() && *end == '%';
  if (percent) share.share /= 100;
  const bool read = error == std::errc{} && (percent || end == number.data() + number.size());
  if (!read || !(share.share > 0 && share.share <= 1)) refuse_term(whole);
  return share;
}

}  // namespace

double Payment::spot_share() const {
  double sum = term == Term::spot ? 1 : 0;
  for (const TermShare& each : mix) sum += each.term == Term::spot ? each.share : 0;
  return sum;
}

Payment parse_term(const std::string& text) {
  if (text == word_of(term_words, Term::mix)) return parse_term(usual_mix);
  if (text.find('=') == std::string::npos) {
    const auto term = value_of(term_words, text);
    if (!term) refuse_term(text);
    return {.term = *term};
  }
  Payment payment{.term = Term::mix};
  double sum = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    payment.mix.push_back(parse_share(std::string_view{text}.substr(begin, end - begin), text));
    sum += payment.mix.back().share;
    begin = end + 1;
  }
  if (std::abs(sum - 1) > 1e-6) refuse_term(text, fmt::format(", which adds up to {:g}", sum));
  return payment;
}

std::string words_of(const Payment& payment) {
  if (payment.term != Term::mix) return std::string{words_of(payment.term)};
  std::string words;
  for (const TermShare& each : payment.mix) {
    words += fmt::format("{}{:g} % {}", words.empty() ? "" : ", ", 100 * each.share,
                         words_of(each.term));
  }
  return words;
}

void put_price(hardware::Cluster& cluster, const Payment& payment,
               const std::vector<Quote>& quotes) {
  if (payment.term == Term::own)
    put_owned(cluster);
  else if (payment.term != Term::on_demand)
    put_offer(cluster, payment);
  for (const Quote& each : quotes) {
    if (!each.node.empty() && each.node != cluster.node.name) continue;
    cluster.price_per_gpu_hour = each.price;
    cluster.price_source = "quoted (--quote)";
  }
}

std::optional<std::string> doubt(const Quote& quote) {
  std::optional<Price> least;
  for (const hardware::Offer& each : hardware::offers()) {
    const bool named = quote.node.empty() || std::ranges::count(each.nodes, quote.node) > 0;
    if (!named) continue;
    for (const auto& price :
         {std::optional{each.on_demand}, each.reserved_1y, each.reserved_3y, each.spot}) {
      if (price) least = least ? std::min(*least, *price) : *price;
    }
  }
  if (!least || ratio(quote.price, *least) >= 0.1) return std::nullopt;
  return fmt::format("--quote: is {} the price of a GPU-hour? Every dated offer is above {}",
                     format(quote.price), format(*least * 0.999));
}

}  // namespace orrery::scenarios
