// A generation is one file of the catalogue.

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "hardware/gpu/generation.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

TEST_CASE("A generation names GPUs with curves and a scale-up network that exist") {
  const std::vector<std::string> names = entry_names(EntryKind::generation);
  CHECK(names.size() >= 9);
  for (const std::string& name : names) {
    INFO(name);
    const Generation& generation = generation_named(name);
    CHECK(generation.name == name);
    CHECK_FALSE(generation.curves_from.empty());
    for (const std::string& gpu : generation.curves_from) CHECK(find_entry(EntryKind::gpu, gpu));
    CHECK(find_entry(EntryKind::scale_up, generation.scale_up));
  }
}

TEST_CASE("The peer of a power rule is a GPU of the catalogue, or its share and power are stated") {
  for (const std::string& name : entry_names(EntryKind::generation)) {
    for (const PowerRule& rule : generation_named(name).power_rules) {
      INFO(name << " " << rule.silicon);
      if (!rule.peer) continue;
      CHECK((find_entry(EntryKind::gpu, rule.peer->gpu) || (rule.peer->share && rule.peer->power)));
    }
  }
}

TEST_CASE("A generation of a vendor's GPUs says when it was announced") {
  CHECK(generation_named("hopper").announced == 2022);
  CHECK(generation_named("volta").announced == 2017);
  CHECK(generation_named("other").announced == std::nullopt);
}

TEST_CASE("Every GPU of the catalogue is of a generation that has a file") {
  for (const std::string& gpu : entry_names(EntryKind::gpu)) {
    const auto name = find_entry(EntryKind::gpu, gpu)->at("generation").get<std::string>();
    INFO(gpu << ": " << name);
    CHECK(find_entry(EntryKind::generation, name));
  }
}

// Capabilities of NVIDIA's table: A10 8.6, L40S 8.9, H200 9.0, B200 10.0, RTX 5090 12.0.
TEST_CASE("A compute capability belongs to the newest generation up to it") {
  CHECK(generation_of(70).name == "volta");
  CHECK(generation_of(86).name == "ampere");
  CHECK(generation_of(89).name == "ada");
  CHECK(generation_of(90).name == "hopper");
  CHECK(generation_of(100).name == "blackwell");
  CHECK(generation_of(120).name == "blackwell");
  CHECK(generation_of(60).name == "other");
}

TEST_CASE("A generation that the catalogue lacks is refused with those that it has") {
  REQUIRE_THROWS_AS(generation_named("tesla"), InputError);
  CHECK(unknown_entry(EntryKind::generation, "tesla") ==
        "unknown generation 'tesla'; known: ada ampere blackwell cdna2 cdna3 cdna4 cpu hopper "
        "other volta");
}

}  // namespace orrery::hardware
