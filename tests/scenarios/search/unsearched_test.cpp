#include "scenarios/search/space/unsearched.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "scenarios/search/space/dimensions.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {
namespace {

TEST_CASE("Every field of a plan is searched, has a flag, or its row says why it is not searched") {
  // A stack that lists dispatchers and overlaps; those two are lacking elsewhere.
  PlanQuery query = plan_query("qwen3-30b-a3b", "dgx-h100", 8, 4096);
  const Document profile = Document::from(models::software_profile("megatron-core"), "profile");
  query.software = models::read_software(profile.root());
  using Search = models::PlanField::Search;
  for (const models::PlanField& field : models::plan_fields()) {
    INFO(field.key);
    const bool listed = field.search != Search::tried;
    const bool cut = field.key == "stage_layers" || field.key == "embedding_counts";
    CHECK((listed != is_searched(field.key, query.software) || cut));
  }
  for (const SearchDimension& each : search_dimensions()) {
    CHECK(models::plan_field(each.key).search == Search::tried);
  }
}

bool lists(const PlanQuery& query, std::string_view key, Unsearched why) {
  const std::vector<UnsearchedField> all = unsearched(query, query.fixed);
  return std::ranges::any_of(
      all, [&](const UnsearchedField& each) { return each.key == key && each.why == why; });
}

TEST_CASE("What a stack lists no values of is named, and what is fixed is not") {
  // megatron-lm's profile says nothing about dispatchers.
  PlanQuery query = plan_query("qwen3-30b-a3b", "dgx-h100", 8, 4096);
  CHECK(lists(query, "dispatcher", Unsearched::lacking));
  CHECK(lists(query, "prefetch", Unsearched::open));
  query.stated = {"prefetch"};
  CHECK_FALSE(lists(query, "prefetch", Unsearched::open));
  const PlanQuery dense = plan_query("gpt2", "dgx-h100", 8, 1024);
  CHECK_FALSE(lists(dense, "dispatcher", Unsearched::lacking));
  CHECK_FALSE(lists(dense, "capacity", Unsearched::result));
}

}  // namespace
}  // namespace orrery::scenarios
