// What orrery contention says, and the page that it writes.

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string two_jobs =
    "contention --model gpt3-175b --cluster 'dgx-a100-80gb x 16' "
    "--plan tensor=8,pipeline=4,data=4,micro_batch=1,global_batch=32 "
    "--set /cluster/fabric/oversubscription=4 --set /cluster/fabric/nodes_per_leaf=4 --phases 4 ";

std::string text_at(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream{path}.rdbuf();
  return text.str();
}

TEST_CASE("Contention compares placements, a second job and a slow NIC, with overlap and without") {
  const Ran ran = orrery(two_jobs + "--json");
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  REQUIRE(json.at("cases").size() == 8);
  CHECK(json.at("nodes") == 16);
  CHECK(json.at("all_nodes") == 20);
  for (const std::size_t first : {0, 4}) {
    const Json& usual = json["cases"][first];
    CHECK(usual.at("name") == "contiguous");
    CHECK(usual.at("overlap") == (first == 4));
    CHECK(usual.at("against_contiguous_pct") == 0.0);
    const auto step = [&](std::size_t i) {
      return json["cases"][first + i].at("step_time_s").get<double>();
    };
    const auto alone = [&](std::size_t i) {
      return step(i) - json["cases"][first + i].at("contention_s").get<double>();
    };
    CHECK(alone(1) > alone(0));
    CHECK(step(2) > step(0));  // scattered under oversubscription
    CHECK(json["cases"][first + 3].at("from_jobs_s").get<double>() == Approx(step(3) - step(2)));
    for (std::size_t i = 0; i < 4; ++i) {
      const Json& phases = json["cases"][first + i].at("step_times_s");
      REQUIRE(phases.size() == 4);
      double sum = 0;
      for (const Json& each : phases) sum += each.get<double>();
      CHECK(sum / 4 == Approx(step(i)));
    }
  }
}

TEST_CASE("Contention writes a page with a picture and the command that makes it") {
  const auto folder = std::filesystem::temp_directory_path() / "orrery_contention_page";
  std::filesystem::remove_all(folder);
  const Ran ran = orrery(two_jobs + "--page " + folder.string());
  CHECK(ran.exit_code == 0);
  const std::string page = text_at(folder / "contention.md");
  CHECK(page.find("![Steps by placement](contention.svg)") != std::string::npos);
  CHECK(page.find("--page " + folder.string()) != std::string::npos);
  CHECK(page.find("next to a job of 32 GPUs") != std::string::npos);
  const std::string picture = text_at(folder / "contention.svg");
  CHECK(picture.find("scattered, next to a second job") != std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("Contention has the same bytes in every run, and other phases with another seed") {
  const std::string first = orrery(two_jobs + "--json").out;
  CHECK(orrery(two_jobs + "--json").out == first);
  CHECK(parsed(orrery(two_jobs + "--json --seed 2").out)["cases"] != parsed(first)["cases"]);
}

TEST_CASE("A small effect looks small: bars are differences, over an axis of at least a percent") {
  // A slow NIC adds a tenth of a percent, and sharing links less.
  const Ran ran =
      orrery("contention llama3-70b-64-h100 --phases 2 --page " +
             (std::filesystem::temp_directory_path() / "orrery_contention_small").string());
  CHECK(ran.exit_code == 0);
  const auto folder = std::filesystem::temp_directory_path() / "orrery_contention_small";
  const std::string picture = text_at(folder / "contention.svg");
  CHECK(picture.find(">0 %<") != std::string::npos);
  CHECK(picture.find(">1 %<") != std::string::npos);
  CHECK(picture.find("begins at") == std::string::npos);
  CHECK(text_at(folder / "contention.md").find(" 0.00 s, ") == std::string::npos);
  std::filesystem::remove_all(folder);
}

TEST_CASE("Contention refuses what it varies, and a cluster without a network") {
  const Ran placed = orrery(two_jobs + "--set '/placement={\"scattered\": 3}'");
  CHECK(placed.exit_code == 2);
  CHECK(placed.error.find("command line:/placement: orrery contention sets this itself") !=
        std::string::npos);
  const Ran job = orrery(two_jobs + "--set /network=events");
  CHECK(job.exit_code == 2);
}

}  // namespace
}  // namespace orrery::scenarios
