#pragma once
// What a GPU-hour of a cluster costs by the way it is paid for: rented on demand, reserved, on the
// spot market, owned, or at a price that somebody was quoted.

#include <optional>
#include <string>
#include <vector>

#include "hardware/cluster.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

enum class Term : std::uint8_t { on_demand, one_year, three_years, spot, own };
inline constexpr Words<Term, 5> term_words{{{Term::on_demand, "on-demand"},
                                            {Term::one_year, "1y"},
                                            {Term::three_years, "3y"},
                                            {Term::spot, "spot"},
                                            {Term::own, "own"}}};

/// `--quote`: of a node type, or of all where it names none.
struct Quote {
  std::string node{};
  Price price{};
};
/// "p5=2.10/h", "p5=$2.10/h", "2.10/h". Errors  `--quote: expected ..., found 'x'`
Quote parse_quote(const std::string& text);

/// Gives the cluster its price; none where no offer has such a price.
///   own  (node + hall + switches of this cluster) by the formula of OwnedGpu
void put_price(hardware::Cluster& cluster, Term term, const std::vector<Quote>& quotes);

/// Where a quote is below a tenth of every dated offer: a question to the reader.
std::optional<std::string> doubt(const Quote& quote);

}  // namespace orrery::scenarios
