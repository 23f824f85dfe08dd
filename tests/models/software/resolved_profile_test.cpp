#include "models/software/resolved_profile.hpp"

#include <catch2/catch.hpp>

#include "models/software/software.hpp"
#include "sim/errors.hpp"

namespace orrery::models {

namespace {

ResolvedProfile descent_of(const char* text, std::optional<int> year = {}) {
  const Json written = Json::parse(text);
  return resolve_profile(Node{written, "mine.json", ""}, year);
}

}  // namespace

TEST_CASE("A profile states what differs from its parent and inherits the rest") {
  const ResolvedProfile mine = descent_of(
      R"({"name": "mine", "parent": "nemo", "source": "ours", "year": 2025,
          "host": {"step": "40 ms"}, "kernels": {"attention": {"hopper": "flash-2"}}})");
  CHECK(mine.line == std::vector<std::string>{"mine", "nemo", "megatron-core"});
  const Software read = read_software(Node{mine.profile, "mine.json", ""});
  const Software nemo = read_software(Node{software_profile("nemo"), "nemo", ""});
  CHECK(read.host.step == Time{40'000'000'000});
  CHECK(read.host.forward_launch == nemo.host.forward_launch);
  CHECK(read.attention("hopper") == "flash-2");
  CHECK(read.attention("ampere") == nemo.attention("ampere"));
  CHECK_FALSE(read.residuals);  // those of other runs
  CHECK(mine.origins.at("/host/step") == "mine");
  CHECK(mine.origins.at("/overlap/data_exposed") == "nemo");
  CHECK(mine.origins.at("/host/forward_launch") == "megatron-core");
}

TEST_CASE("What differed in some years holds in those") {
  const char* text = R"({"name": "mine", "parent": "megatron-core", "source": "ours", "year": 2025,
    "eras": [{"to_year": 2022, "changes": {"kernels": {"dropout": true}}, "source": "its code"},
             {"from_year": 2023, "to_year": 2023, "changes": {"gathered": "kept"},
              "source": "its notes"}]})";
  CHECK_FALSE(descent_of(text).profile.at("kernels").contains("dropout"));
  const ResolvedProfile old = descent_of(text, 2021);
  CHECK(old.dated);
  CHECK(old.profile.at("kernels").at("dropout") == true);
  CHECK(old.profile.at("year") == 2021);
  CHECK(old.origins.at("/kernels/dropout") == "mine, to 2022: its code");
  CHECK(descent_of(text, 2023).profile.at("gathered") == "kept");
  CHECK_FALSE(descent_of(text, 2024).profile.contains("gathered"));
}

TEST_CASE("A run of a stack is priced as the stack was in its year") {
  std::vector<std::string> assumptions;
  const Software old = software_for_run({"nemo", 2022, 2}, {}, assumptions);
  CHECK(old.attention("ampere") == "unfused");
  CHECK(old.kernels.dropout);
  const Software modern = software_for_run({"nemo", 2025, 2}, {}, assumptions);
  CHECK(modern.attention("ampere") == "flash-2");
  CHECK(assumptions.empty());
  CHECK(software_for_run({"unheard-of", 2020, 2}, {}, assumptions).attention("ampere") ==
        "unfused");
  CHECK(assumptions.size() == 1);
}

TEST_CASE("A line of profiles ends, and its parents are known") {
  CHECK_THROWS_WITH(descent_of(R"({"name": "mine", "parent": "nobody"})"),
                    Catch::Matchers::StartsWith("mine.json:/parent: unknown software 'nobody'"));
  CHECK_THROWS_AS(
      descent_of(R"({"name": "a", "eras": [{"changes": {"name": "b"}, "source": ""}]})"),
      InputError);
  CHECK_THROWS_AS(descent_of(R"({"name": "a", "eras": [{"from_year": 2023, "to_year": 2022,
                                 "changes": {}, "source": ""}]})"),
                  InputError);
}

TEST_CASE("Every shipped profile reads in every year") {
  for (const std::string& name : software_names()) {
    for (int year = 2018; year <= 2027; ++year) {
      INFO(name << " in " << year);
      const Json profile = software_profile(name, year);
      CHECK(read_software(Node{profile, name, ""}).name == name);
    }
  }
}

}  // namespace orrery::models
