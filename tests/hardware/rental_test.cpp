#include "hardware/prices/rental.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"

using namespace orrery;
using namespace orrery::hardware;

TEST_CASE("The last year that a text names is that of a price") {
  CHECK(year_of("Lambda on demand, 2025-2026, catalog") == 2026);
  CHECK(year_of("RunPod on demand, 2025-03-03, Epoch AI") == 2025);
  CHECK(year_of("third-party price audit of 2026-10-06") == 2026);
  CHECK(year_of("unconfirmed") == 0);
  CHECK(year_of("82.75 a host of 120261 or 1999") == 0);
}

TEST_CASE("Nodes rent at the lowest price of the latest year among those who rent as many") {
  // Hyperstack rents machines one by one, for less than anyone rents clusters: of these Together
  // is the cheapest of 2026.
  const auto one = rental_of("hgx-h100", 1);
  CHECK(one->price.count() == 3.20);
  CHECK(one->source.find("Hyperstack on demand, 2026-10, ") == 0);
  const auto many = rental_of("hgx-h100", 32);
  CHECK(many->price.count() == 3.99);
  CHECK(many->source.find("Together on demand, 2026-10, ") == 0);
  for (const Offer& offer : offers()) {
    for (const std::string& node : offer.nodes) {
      if (offer.scope != OfferScope::cluster) continue;
      INFO(offer.name << " of " << node);
      const auto rental = rental_of(node, 8);
      REQUIRE(rental);
      CHECK(rental->covers(8));
    }
  }
  CHECK(!rental_of("hgx-h800", 1));
}

TEST_CASE("What is rented in a smaller piece is no price of a cluster") {
  // A marketplace's superchip is no rack, and Lambda's GH200 come one by one.
  const auto rack = rental_of("gb200-nvl72", 1);
  REQUIRE(rack);
  CHECK(!rack->covers(1));
  CHECK(why_not_rented(*rack).find("rented one GPU or superchip at a time: Spheron on demand") ==
        0);
  CHECK(rental_of("gh200-1x", 1)->covers(1));
  CHECK(!rental_of("gh200-1x", 2)->covers(2));
  const auto all = rentals();
  const auto covers = [&](const std::string& node, int nodes) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Rental& each) { return each.node == node && each.covers(nodes); });
  };
  CHECK(!covers("gb200-nvl72", 1));
  CHECK(covers("gh200-1x", 1));
  CHECK(!covers("gh200-1x", 64));
  CHECK(covers("hgx-h100", 1));
  CHECK(covers("hgx-h100", 1024));
}

TEST_CASE("A cluster is priced as it is rented, and says where nobody rents as many") {
  CHECK(named_cluster("hgx-h100").price_per_gpu_hour->count() == 3.20);
  const Cluster many = named_cluster("hgx-h100 x 2");
  CHECK(many.price_per_gpu_hour->count() == 3.99);
  const auto assumed = [](const Cluster& cluster) {
    return std::any_of(cluster.assumptions.begin(), cluster.assumptions.end(),
                       [](const std::string& each) {
                         return each.rfind("price_per_gpu_hour: rented one ", 0) == 0;
                       });
  };
  CHECK(!assumed(many));
  const Cluster singles = named_cluster("gh200-1x x 4");
  CHECK(singles.price_per_gpu_hour->count() == 2.29);
  CHECK(assumed(singles));
  CHECK(!assumed(named_cluster("gh200-1x")));
}

TEST_CASE("Another number of nodes has the price of as many, unless the price was given") {
  Cluster cluster = named_cluster("hgx-h100 x 2");
  set_nodes(cluster, 1);
  CHECK(cluster.nodes == 1);
  CHECK(cluster.price_per_gpu_hour->count() == 3.20);
  cluster.price_per_gpu_hour = Price{1};
  cluster.price_source = "given";
  set_nodes(cluster, 2);
  CHECK(cluster.price_per_gpu_hour == Price{1});

  Json json = Catalogue::cluster("hgx-h100 x 2");
  drop_listed_price(json);
  CHECK(!json.contains("price_per_gpu_hour"));
  json = Catalogue::cluster("hgx-h100 x 2");
  json["price_per_gpu_hour"] = "$1/h";
  drop_listed_price(json);
  CHECK(json["price_per_gpu_hour"] == "$1/h");
}

TEST_CASE("The age of a price is counted to the newest dated price of the catalogue") {
  // The newest is of 2026-10; "2025-2026" may be of its last month.
  CHECK(newest_offer_month() == "2026-10");
  CHECK(months_before_newest("2026-10-06") == 0);
  CHECK(months_before_newest("2025-10") == 12);
  CHECK(months_before_newest("2025-09") == 13);
  CHECK(months_before_newest("2025-03-03") == 19);
  CHECK(months_before_newest("2025-2026") == 0);
  CHECK(months_before_newest("2024-2025") == 10);
  CHECK(!months_before_newest("undated"));
  for (const Offer& each : offers()) {
    INFO(each.name);
    CHECK(months_before_newest(each.date));
  }
}

TEST_CASE("A price says whose it is, of which date, and what it is a price of") {
  const auto rack = price_of(named_cluster("gb200-nvl72 x 8"));
  REQUIRE(rack);
  CHECK(rack->indicative());
  CHECK(rack->listed->why_indicative == "rented one GPU or superchip at a time");
  CHECK(rack->listed->date == "2026-03-17");
  CHECK(!rack->outdated());
  const auto ampere = price_of(named_cluster("dgx-a100-80gb"));
  REQUIRE(ampere);
  CHECK(!ampere->indicative());  // one node, as it is rented
  CHECK(ampere->outdated());     // of 2025-03
  CHECK(price_of(named_cluster("dgx-a100-80gb x 2"))->indicative());
  CHECK(!price_of(named_cluster("mi300x-8x")));
  Cluster own = named_cluster("dgx-a100-80gb x 2");
  own.price_per_gpu_hour = Price{1};
  own.price_source = "given";
  CHECK(!price_of(own)->listed);
  CHECK(!price_of(own)->outdated());
}
