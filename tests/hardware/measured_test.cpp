#include "hardware/curves/measured.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <string>

using namespace orrery;
using namespace orrery::hardware;

namespace {

std::set<std::string> sources_used(const Table& table) {
  std::set<std::string> used;
  for (std::size_t i = 0; i < table.size(); ++i) used.emplace(table[i].text("source"));
  return used;
}

}  // namespace

TEST_CASE("Every measured row names a source, and every source says where it was published") {
  std::set<std::string> known;
  const Table& sources = measured_sources();
  for (std::size_t i = 0; i < sources.size(); ++i) {
    CHECK(known.emplace(sources[i].text("source")).second);
    CHECK(!sources[i].text("published_at").empty());
  }
  std::set<std::string> used = sources_used(measured_kernels());
  used.merge(sources_used(measured_collectives()));
  CHECK(used == known);
}

TEST_CASE("A measured row has a time above zero, or a reason why it does not count") {
  for (const Table* table : {&measured_kernels(), &measured_collectives()}) {
    std::set<std::string> names;
    for (std::size_t i = 0; i < table->size(); ++i) {
      const Row row = (*table)[i];
      INFO(row.place());
      CHECK(names.emplace(row.text("id")).second);
      const auto time = row.number("time_us");
      CHECK((time ? *time > 0 : !row.text("set_aside").empty()));
    }
  }
}
