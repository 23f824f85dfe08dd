#pragma once
// What a GPU-hour of a cluster costs by the way it is paid for: rented on demand, reserved, on the
// spot market, part one and part another, owned, or at a price that somebody was quoted.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

enum class Term : std::uint8_t { on_demand, one_year, three_years, spot, mix, own };
inline constexpr Words<Term, 6> term_words{{{Term::on_demand, "on-demand"},
                                            {Term::one_year, "1y"},
                                            {Term::three_years, "3y"},
                                            {Term::spot, "spot"},
                                            {Term::mix, "mix"},
                                            {Term::own, "own"}}};

/// `--quote`: of a node type, or of all where it names none.
struct Quote {
  std::string node{};
  Price price{};
};
/// "p5=2.10/h", "p5=$2.10/h", "2.10/h". Errors  `--quote: expected ..., found 'x'`
Quote parse_quote(const std::string& text);

/// A share of the nodes that is paid for in one way.
struct TermShare {
  Term term = Term::on_demand;
  double share = 1;
};
/// How nodes are paid for: one term, or the shares of a mix, which add up to 1.
struct Payment {
  Term term = Term::on_demand;
  std::vector<TermShare> mix{};

  /// Of the nodes that a spot market may take.
  double spot_share() const;
};
/// "3y", or a mix "3y=0.6,spot=0.4"; "mix" alone is `usual_mix`.
/// Errors  `--term: expected ..., found 'x'`
Payment parse_term(const std::string& text);
inline constexpr const char* usual_mix = "on-demand=0.7,spot=0.3";
/// "60 % reserved for 3 years, 40 % on the spot market".
std::string words_of(const Payment& payment);

/// Gives the cluster its price; none where no offer has such a price.
///   own  (node + hall + switches of this cluster) by the formula of OwnedGpu
///   mix  sum of share x price, of one offer that has them all
void put_price(hardware::Cluster& cluster, const Payment& payment,
               const std::vector<Quote>& quotes);

/// Where a quote is below a tenth of every dated offer: a question to the reader.
std::optional<std::string> doubt(const Quote& quote);

}  // namespace orrery::scenarios
