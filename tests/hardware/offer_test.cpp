#include "hardware/prices/offer.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"

using namespace orrery;
using namespace orrery::hardware;

TEST_CASE("Every offer is of a node of the catalogue, dated, and waiting or risk is cheaper") {
  const auto all = offers();
  CHECK(all.size() >= 20);
  for (const Offer& offer : all) {
    INFO(offer.name);
    CHECK(offer.date.rfind("20", 0) == 0);
    CHECK(!offer.source.empty());
    CHECK(!offer.nodes.empty());
    for (const std::string& node : offer.nodes) CHECK(named_cluster(node).node.name == node);
    CHECK(offer.reserved_1y.value_or(offer.on_demand) <= offer.on_demand);
    CHECK(offer.reserved_3y.value_or(offer.on_demand) <= offer.on_demand);
    if (offer.reserved_1y && offer.reserved_3y) CHECK(*offer.reserved_3y < *offer.reserved_1y);
    CHECK(offer.spot.value_or(Price{}) < offer.on_demand);
  }
}

TEST_CASE("An H100 of AWS costs an eighth of its host by the hour") {
  // p5.48xlarge: $55.04 an hour for eight GPUs.
  const auto all = offers();
  const auto p5 = std::find_if(all.begin(), all.end(),
                               [](const Offer& offer) { return offer.name == "aws-p5"; });
  REQUIRE(p5 != all.end());
  CHECK(p5->on_demand.count() * 8 == Approx(55.04));
  CHECK(!p5->spot);
}

TEST_CASE("An offer of an unknown node or without a unit is refused") {
  const auto error_of = [](const std::string& text) -> std::string {
    const Document document = Document::parse(text, "mine.json");
    try {
      read_offer(document.root());
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string rest = R"("name": "x", "provider": "y", "scope": "node", "date": "2026-10", )";
  CHECK(error_of("{" + rest + R"("node": "p6", "on_demand": "$2/h"})")
            .rfind("mine.json:/node: unknown node 'p6'; known: ", 0) == 0);
  CHECK(error_of("{" + rest + R"("node": "p5", "on_demand": 2})") ==
        "mine.json:/on_demand: expected a price such as \"$2.50/h\", found 2");
}

TEST_CASE("Nodes and switches say what they cost to buy, where a price was published") {
  const Cluster cluster = named_cluster("hgx-h100 x 2");
  CHECK(cluster.node.purchase_price->count() == 310'000);
  CHECK(cluster.fabric.leaf.purchase_price->count() == 36'000);
  CHECK(!named_cluster("p5").node.purchase_price);
}
