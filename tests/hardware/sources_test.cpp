#include "hardware/sources.hpp"

#include <catch2/catch.hpp>

using namespace orrery;
using namespace orrery::hardware;

TEST_CASE("A number's source is the longest pointer of the nearest object that knows it") {
  const Json value = Json::parse(R"({
    "name": "400 and more", "count": 8,
    "card": {"rate": "400 Gb/s", "cost": "$10", "sources": {"/rate": "datasheet"}},
    "peaks": {"bf16": "312 TFLOP/s", "fp64": "9.7 TFLOP/s"},
    "sources": {"/card": "shop", "/peaks": "paper", "/peaks/fp64": "unconfirmed"}
  })");
  const auto numbers = sourced_numbers(value);
  REQUIRE(numbers.size() == 5);
  CHECK(numbers[0].pointer == "/count");
  CHECK(numbers[0].source.empty());
  CHECK(numbers[1].pointer == "/card/rate");
  CHECK(numbers[1].source == "datasheet");
  CHECK(numbers[2].pointer == "/card/cost");
  CHECK(numbers[2].source == "shop");
  CHECK(numbers[3].source == "paper");
  CHECK(numbers[4].source == "unconfirmed");
  CHECK(count_unconfirmed(value) == 1);
}

TEST_CASE("A pointer covers what is below it, not what merely begins alike") {
  const Json value = Json::parse(R"({"gpu": 1, "gpus": 8, "sources": {"/gpu": "sheet"}})");
  CHECK(source_of(value, "/gpu") == "sheet");
  CHECK(source_of(value, "/gpu/memory") == "sheet");
  CHECK(source_of(value, "/gpus").empty());
}
