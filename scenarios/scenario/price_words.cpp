#include "scenarios/scenario/price_words.hpp"

#include <fmt/format.h>

#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

Json price_json(const std::optional<hardware::ClusterPrice>& price) {
  if (!price) return nullptr;
  const auto& listed = price->listed;
  return {{"usd_per_gpu_hour", price->per_gpu_hour.count()},
          {"provider", listed ? Json(listed->provider) : Json(nullptr)},
          {"date", listed ? Json(listed->date) : Json(nullptr)},
          {"term", listed ? Json("on-demand") : Json(nullptr)},
          {"source", price->source},
          {"outdated", price->outdated()},
          {"indicative", listed ? or_null(listed->why_indicative) : Json(nullptr)}};
}

std::string source_words(const hardware::ClusterPrice& price) {
  std::string words = price.source;
  if (price.indicative()) {
    words += fmt::format("; {}: an indication, not the price of such a cluster",
                         price.listed->why_indicative);
  }
  if (price.outdated()) {
    words += fmt::format(
        "; OLD: listed {}, more than {} months before the catalogue's newest price "
        "({})",
        price.listed->date, hardware::outdated_after_months, hardware::newest_offer_month());
  }
  return words;
}

std::string no_price_words(const std::string& node) {
  return fmt::format(
      "no rental offer of the catalogue names {}; state price_per_gpu_hour in a "
      "file, or with orrery simulate --set /cluster/price_per_gpu_hour='$2/h'",
      node);
}

}  // namespace orrery::scenarios
