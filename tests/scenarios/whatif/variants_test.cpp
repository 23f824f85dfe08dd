#include "scenarios/whatif/variants.hpp"

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

WhatIfTable variants_of(const std::string& scenario, const std::vector<std::string>& changes) {
  const Scenario base = Scenario::load(scenario);
  const ListedChanges sorted = sorted_changes(base, changes);
  return predict_variants(sorted.single.empty() ? base : base.replace(sorted.single), sorted.lists,
                          {}, {.threads = 2, .progress = {}});
}

}  // namespace

TEST_CASE("Commas outside brackets, braces and quotes separate the values of a change") {
  const auto numbers = value_list("/plan/tensor=2,4,8");
  REQUIRE(numbers);
  CHECK(numbers->pointer == "/plan/tensor");
  CHECK(numbers->values == std::vector<Json>{2, 4, 8});
  const auto lists = value_list("/plan/stage_layers=[3,1],[2,2]");
  REQUIRE(lists);
  CHECK(lists->values == std::vector<Json>{Json{3, 1}, Json{2, 2}});
  const auto texts = value_list(R"(/name="a,b","c")");
  REQUIRE(texts);
  CHECK(texts->values == std::vector<Json>{"a,b", "c"});
  for (const char* one :
       {"/plan/tensor=2", R"(/placement={"scattered":1,"order":"x"})", "/plan/tensor=2,,4",
        "/plan/tensor=2,", "plan/tensor=2,4", "/plan/x=[1,2"}) {
    INFO(one);
    CHECK_FALSE(value_list(one));
  }
}

TEST_CASE("Text with commas that the scenario takes as one value is no list") {
  const Scenario base = Scenario::load("llama3-70b-64-h100");
  const ListedChanges sorted =
      sorted_changes(base, {"/collectives/NCCL_ALGO=Ring,Tree", "/plan/tensor=4,8"});
  REQUIRE(sorted.single.size() == 1);
  CHECK(sorted.single[0].second == "Ring,Tree");
  REQUIRE(sorted.lists.size() == 1);
  CHECK(sorted.lists[0].pointer == "/plan/tensor");
}

TEST_CASE("A row of a what-if table is what simulate predicts, and a refused value is a row") {
  const WhatIfTable table =
      variants_of("llama3-70b-64-h100", {"/plan/tensor=4,8,3", "/plan/zero=0,1"});
  REQUIRE(table.rows.size() == 6);
  CHECK_FALSE(table.stopped);
  const Scenario base = Scenario::load("llama3-70b-64-h100");
  for (const WhatIf& row : table.rows) {
    const bool impossible = row.changes[0].second == Json(3);
    CHECK(row.refused.empty() != impossible);
    if (impossible) continue;
    const models::Prediction alone = models::predict(base.replace(row.changes).question());
    CHECK(row.figures.step == alone.step);
    CHECK(row.memory == alone.memory[alone.fullest].total);
  }
  CHECK(table.rows[0].changes[1].second == Json(0));  // the last list varies fastest
  CHECK(table.rows[1].changes[1].second == Json(1));
  CHECK(table.rows[1].figures.step == table.stated.figures.step);  // tensor 4, ZeRO-1, as stated
  const Json json = to_json(table);
  CHECK(json["variants"][1]["change_pct"] == 0.0);
  CHECK(json["variants"][4]["step_time_s"].is_null());
  CHECK(json["variants"][4]["refused"].is_string());
}

TEST_CASE("simulate prints a what-if table, and its exit code says whether any row fits") {
  const Ran good = orrery("simulate llama3-8b-8-h100 --set /plan/tensor=1,2 --json");
  INFO(good.error);
  CHECK(good.exit_code == 0);
  CHECK(parsed(good.out)["variants"].size() == 2);
  const Ran none = orrery("simulate llama3-8b-8-h100 --set /plan/tensor=3,5");
  CHECK(none.exit_code == 1);
  const Ran mixed = orrery("simulate llama3-8b-8-h100 --set /plan/tensor=1,2 --explain");
  CHECK(mixed.exit_code == 2);
  CHECK(mixed.error.find("--explain: is of one step, and --set /plan/tensor lists 2 values") !=
        std::string::npos);
}

TEST_CASE("More combinations than a table holds are refused") {
  const ValueList list{"/plan/global_batch", std::vector<Json>(101, 64)};
  CHECK_THROWS_WITH(predict_variants(Scenario::load("llama3-8b-8-h100"), {list, list}, {}, {}),
                    Catch::Contains("more than 10000 combinations"));
}

TEST_CASE("A stated data degree that changed nodes or degrees contradict is derived again") {
  const Scenario base = Scenario::load("llama3-70b-64-h100");  // tensor 4, pipeline 8, data 2
  const auto data = [](const Scenario& scenario) { return scenario.question().plan.data; };
  CHECK(data(base) == 2);
  CHECK(data(base.replace({{"/cluster/nodes", 64}})) == 16);
  CHECK(data(base.replace({{"/plan/tensor", 2}})) == 4);
  CHECK(data(base.replace({{"/plan/tensor", 2}, {"/plan/pipeline", 16}})) == 2);
  const std::vector<std::string> assumed =
      base.replace({{"/cluster/nodes", 64}}).question().assumptions;
  CHECK(std::ranges::find(assumed,
                          "/plan/data: 2 stated; 16 derived, because /cluster/nodes changes") !=
        assumed.end());
  CHECK(std::ranges::count_if(assumed, [](const std::string& each) {
          return each.rfind("/plan/data:", 0) == 0;
        }) == 1);
  const std::optional<std::string> name = "llama3-70b-64-h100";
  CHECK(data(Scenario::load(name, {.cluster = "dgx-h100 x 16"})) == 4);
}

TEST_CASE("A cluster that is named by its number of nodes is renamed with it") {
  const Scenario base = Scenario::load("llama3-70b-64-h100");
  CHECK(base.question().cluster.name == "dgx-h100 x 8");
  CHECK(base.replace({{"/cluster/nodes", 64}}).question().cluster.name == "dgx-h100 x 64");
  const Scenario own = base.replace({{"/cluster/name", "our cluster"}});
  CHECK(own.replace({{"/cluster/nodes", 64}}).question().cluster.name == "our cluster");
}

TEST_CASE("A data degree that is stated with the change stays, as does another mistake's message") {
  const Scenario base = Scenario::load("llama3-70b-64-h100");
  CHECK_THROWS_WITH(base.replace({{"/cluster/nodes", 64}, {"/plan/data", 2}}).question(),
                    Catch::Contains("is 64 GPUs, the cluster has 512"));
  CHECK_THROWS_WITH(base.replace({{"/plan/tensor", 3}}).question(),
                    Catch::Contains("tensor 3 x pipeline 8 x data 2 is 48 GPUs"));
  // 512 GPUs are data 32, whose four micro-batches eight stages cannot interleave.
  CHECK_THROWS_WITH(base.replace({{"/cluster/nodes", 64}, {"/plan/tensor", 2}}).question(),
                    Catch::Contains("a multiple of pipeline 8, found 4"));
}

}  // namespace orrery::scenarios
