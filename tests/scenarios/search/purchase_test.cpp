#include "scenarios/purchase/purchase.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>

#include "models/model/counts.hpp"
#include "scenarios/purchase/purchase_report.hpp"
#include "tests/scenarios/search/queries.hpp"

namespace orrery::scenarios {

namespace {

SoughtNode at_price(const std::string& node, const std::string& price) {
  return {node, {{"node", node}, {"price_per_gpu_hour", price}}};
}

/// GPT-2 on ten billion tokens, on two node types at prices of our own.
PurchaseQuery small_purchase_query() {
  const PlanQuery plan = plan_query("gpt2", "dgx-h100", 1, 1024);
  PurchaseQuery query;
  query.plan.model = plan.model;
  query.plan.software = plan.software;
  query.tokens = 1e10;
  query.plan.global_batch = 64;
  query.plan.seq_len = 1024;
  query.nodes = {at_price("dgx-h100", "$4/h"), at_price("dgx-a100-80gb", "$1/h")};
  return query;
}

const PurchaseChoice& choice_of(const PurchaseAnswer& answer, const std::string& node, int nodes) {
  const auto found = std::find_if(
      answer.choices.begin(), answer.choices.end(),
      [&](const PurchaseChoice& each) { return each.node == node && each.nodes == nodes; });
  REQUIRE(found != answer.choices.end());
  return *found;
}

}  // namespace

TEST_CASE("Sizes double from one node as long as the GPUs are no more than are rented") {
  const std::vector<int> sizes = sizes_of(hardware::named_cluster("dgx-h100").node);
  CHECK(sizes.front() == 1);
  CHECK(sizes.back() == 1024);  // x 8 = 8192
  CHECK(sizes.size() == 11);
  CHECK(sizes_of(hardware::named_cluster("gb200-nvl72").node).back() == 64);  // 128 would be 9216
}

TEST_CASE("Days and dollars follow from the rate of the best plan and the price") {
  const PurchaseAnswer answer = search_purchases(small_purchase_query(), {2, {}});
  const PurchaseChoice& one = choice_of(answer, "dgx-h100", 2);
  const PlanQuery asked = plan_query("gpt2", "dgx-h100 x 2", 64, 1024);
  const PlanAnswer best = search_plans(asked, objective_named("time"), {1, {}});
  CHECK(one.plan.estimate.step == best.fitting.front().estimate.step);
  // 10^10 tokens at 64 x 1024 a step.
  const double days = 1e10 / (64 * 1024) * seconds(one.plan.estimate.step) / 86400;
  CHECK(one.days == Approx(days).epsilon(1e-12));
  CHECK(one.cost->count() == Approx(days * 24 * 16 * 4.0).epsilon(1e-12));
  CHECK(one.gpus == 16);
  CHECK(one.meets);
}

TEST_CASE("A choice is on the front when no other is at least as fast and as cheap") {
  const PurchaseAnswer answer = search_purchases(small_purchase_query(), {2, {}});
  REQUIRE(answer.choices.size() > 4);
  for (const PurchaseChoice& each : answer.choices) {
    const bool beaten =
        std::any_of(answer.choices.begin(), answer.choices.end(), [&](const PurchaseChoice& other) {
          return other.days <= each.days && other.cost <= each.cost &&
                 (other.days < each.days || other.cost < each.cost);
        });
    INFO(each.node << " x " << each.nodes);
    CHECK(each.pareto != beaten);
  }
}

TEST_CASE("Without limits the cheapest is first, with a budget alone the fastest that keeps it") {
  PurchaseQuery query = small_purchase_query();
  const PurchaseAnswer free = search_purchases(query, {2, {}});
  for (std::size_t i = 1; i < free.choices.size(); ++i) {
    CHECK(free.choices[i - 1].cost <= free.choices[i].cost);
  }
  CHECK(free.meeting() == static_cast<std::int64_t>(free.choices.size()));

  query.budget = free.choices[free.choices.size() / 2].cost;
  const PurchaseAnswer limited = search_purchases(query, {2, {}});
  const auto meeting = static_cast<std::size_t>(limited.meeting());
  CHECK(meeting == free.choices.size() / 2 + 1);
  for (std::size_t i = 0; i < meeting; ++i) {
    CHECK(limited.choices[i].cost <= *query.budget);
    if (i > 0) CHECK(limited.choices[i - 1].days <= limited.choices[i].days);
  }
}

TEST_CASE("A deadline keeps what is in time, the cheapest first") {
  PurchaseQuery query = small_purchase_query();
  const PurchaseAnswer free = search_purchases(query, {2, {}});
  const double days = choice_of(free, "dgx-h100", 1).days;
  query.deadline_days = days * 1.0001;
  const PurchaseAnswer limited = search_purchases(query, {2, {}});
  REQUIRE(limited.meeting() > 1);
  for (std::size_t i = 0; i < static_cast<std::size_t>(limited.meeting()); ++i) {
    CHECK(limited.choices[i].days <= days * 1.0001);
    if (i > 0) CHECK(limited.choices[i - 1].cost <= limited.choices[i].cost);
  }
}

TEST_CASE("Where nothing meets the limits, even what the GPUs' peak rules out is looked at") {
  PurchaseQuery query = small_purchase_query();
  query.deadline_days =
      1.0 / 86400;  // 10^10 tokens x 0.8 GFLOP over 8192 H100 are 1 s, and no step is ideal
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  CHECK(answer.meeting() == 0);
  REQUIRE(!answer.choices.empty());
  // The limit is one of time: the fastest comes closest.
  for (const PurchaseChoice& each : answer.choices) CHECK(answer.choices.front().days <= each.days);
  CHECK(reason_of(answer).find("no cluster meets deadline and budget; closest: ") == 0);
}

TEST_CASE("A cluster that its GPUs' peak rules out is named with the reason") {
  PurchaseQuery query = small_purchase_query();
  // 3 x forward FLOPs of 10^10 tokens over the dense peak of 8 GPUs take a time that one node
  // cannot beat; the deadline is a little less, which larger clusters keep.
  const double flops = 3 * models::forward_flops_per_token(query.plan.model, 1024) * 1e10;
  const auto peak = hardware::named_gpu("h100-sxm-80gb").peak(hardware::DType::bf16);
  const double ideal = flops / (8 * peak->count());
  query.deadline_days = ideal * 0.99 / 86400;
  query.plan.global_batch = 1024;
  query.nodes.pop_back();
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  REQUIRE(answer.meeting() > 0);
  REQUIRE(!answer.impossible.empty());
  CHECK(answer.impossible.front().nodes == 1);
  CHECK(answer.impossible.front().reason ==
        "even at the GPUs' peak it takes " + fmt::format("{:.1f}", ideal / 86400) + " days");
}

TEST_CASE("Node types that differ in nothing that counts are one choice") {
  PurchaseQuery query = small_purchase_query();
  query.nodes = {at_price("dgx-h100", "$4/h"), at_price("dgx-h100", "$4/h")};
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  for (const PurchaseChoice& each : answer.choices)
    CHECK(each.also == std::vector<std::string>{"dgx-h100"});
}

TEST_CASE("What a GPU does not support is a reason") {
  PurchaseQuery query = small_purchase_query();
  query.nodes = {at_price("dgx-1-v100", "$1/h")};
  const PurchaseAnswer answer = search_purchases(query, {1, {}});
  CHECK(answer.choices.empty());
  for (const Impossible& each : answer.impossible) {
    CHECK(each.reason == "v100-sxm-16gb does not support bf16");
  }
  CHECK(reason_of(answer) == "no cluster can train this model with this batch");
}

TEST_CASE("The survey is the same for any number of threads") {
  const PurchaseQuery query = small_purchase_query();
  const auto answered_by = [&](unsigned threads) {
    const PurchaseAnswer answer = search_purchases(query, {threads, {}});
    return to_json(PurchaseReport{query, answer, {}, "gpt2", "", 10}).dump();
  };
  CHECK(answered_by(1) == answered_by(3));
}

TEST_CASE("The sizes of one node type are the same for any number of threads") {
  PurchaseQuery query = small_purchase_query();
  query.nodes = {at_price("p5", "$4/h")};
  const auto answered_by = [&](unsigned threads) {
    const PurchaseAnswer answer = search_purchases(query, {threads, {}});
    return to_json(PurchaseReport{query, answer, {}, "gpt2", "", 10}).dump();
  };
  const std::string one = answered_by(1);
  CHECK(Json::parse(one)["choices"].size() > 2);
  CHECK(answered_by(2) == one);
  CHECK(answered_by(5) == one);
}

TEST_CASE("Nodes that are rented one by one are no cluster unless they are asked for") {
  PurchaseQuery query = small_purchase_query();
  query.nodes = {{"dgx-a100-80gb", {{"node", "dgx-a100-80gb"}}, false}};
  const PurchaseAnswer offered = search_purchases(query, {2, {}});
  for (const PurchaseChoice& each : offered.choices) CHECK(each.nodes == 1);
  REQUIRE(!offered.impossible.empty());
  const Impossible& refused = offered.impossible.front();
  CHECK(refused.nodes == 2);
  CHECK(refused.reason.starts_with("rented one node at a time: RunPod on demand, 2025-03-03, "));
  CHECK(!refused.rented);

  query.nodes.front().every_size = true;
  const PurchaseAnswer asked = search_purchases(query, {2, {}});
  CHECK(choice_of(asked, "dgx-a100-80gb", 1).price_rank() == 0);
  const PurchaseChoice& two = choice_of(asked, "dgx-a100-80gb", 2);
  CHECK(two.price_rank() == 1);
  CHECK(two.cost->count() == Approx(two.days * 24 * 16 * 1.89).epsilon(1e-12));
}

TEST_CASE("What has no price has days, and comes after what has one") {
  PurchaseQuery query = small_purchase_query();
  query.nodes = {{"mi300x-8x", {{"node", "mi300x-8x"}}},
                 {"gb200-nvl72", {{"node", "gb200-nvl72"}}},
                 at_price("dgx-h100", "$40/h")};
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  int last = 0;
  for (const PurchaseChoice& each : answer.choices) {
    CHECK(each.meets);
    CHECK(each.days > 0);
    CHECK(each.price_rank() == (each.node == "dgx-h100" ? 0 : each.node == "gb200-nvl72" ? 1 : 2));
    CHECK(each.price_rank() >= last);
    last = each.price_rank();
    CHECK((!each.pareto || each.price_rank() == 0));
    CHECK(each.cost.has_value() == (each.node != "mi300x-8x"));
  }
  CHECK(last == 2);
  const Json json = to_json(PurchaseReport{query, answer, {}, "gpt2", "", 10});
  const Json& unpriced = json["choices"].back();
  CHECK(unpriced["cost_usd"].is_null());
  CHECK(unpriced["price"].is_null());
  CHECK(unpriced["why_no_price"].get<std::string>().starts_with(
      "no rental offer of the catalogue names mi300x-8x; state price_per_gpu_hour"));

  query.budget = Money{1e9};  // a cost that is not known meets no budget
  for (const PurchaseChoice& each : search_purchases(query, {2, {}}).choices) {
    CHECK(each.meets == (each.node != "mi300x-8x"));
  }
}

TEST_CASE("GPUs that a batch cannot be shared out over are idle, and paid for") {
  // 72 GPUs: 9 divides neither 64 sequences nor 12 layers nor 12 heads, so 64 work.
  PurchaseQuery query = small_purchase_query();
  query.nodes = {at_price("gb200-nvl72", "$5/h")};
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  const PurchaseChoice& one = choice_of(answer, "gb200-nvl72", 1);
  CHECK(one.gpus == 72);
  CHECK(one.plan.placed.plan.gpus() == 64);
  CHECK(one.idle() == 8);
  CHECK(one.cost->count() == Approx(one.days * 24 * 72 * 5.0).epsilon(1e-12));
  const Json json = to_json(PurchaseReport{query, answer, {}, "gpt2", "", 10});
  CHECK(json["choices"][0]["idle_gpus"].get<int>() % 8 == 0);
  CHECK(text_of(PurchaseReport{query, answer, {}, "gpt2", "", 10}, {}).find("8 of 72 GPUs idle") !=
        std::string::npos);
}

TEST_CASE("A cluster on which a model fits tightly is not the first choice") {
  // Where every plan leaves less than asked for, the cluster stands after those that do not.
  PurchaseQuery query = small_purchase_query();
  query.tokens = 1e9;
  const Bytes memory = hardware::named_gpu("a100-sxm-80gb").memory;
  const PurchaseAnswer free = search_purchases(query, {2, {}});
  Bytes least = memory;
  for (const PurchaseChoice& each : free.choices)
    least = std::min(least, each.plan.estimate.memory);
  query.plan.headroom =
      1 - ratio(least + 1_MiB, memory);  // the smallest fits well, most others do not
  const PurchaseAnswer answer = search_purchases(query, {2, {}});
  const auto tight = [](const PurchaseChoice& each) { return each.tight(); };
  REQUIRE(std::any_of(answer.choices.begin(), answer.choices.end(), tight));
  CHECK(!answer.choices.front().tight());
  CHECK(std::is_partitioned(answer.choices.begin(), answer.choices.end(),
                            [](const PurchaseChoice& each) { return !each.tight(); }));
}

}  // namespace orrery::scenarios
