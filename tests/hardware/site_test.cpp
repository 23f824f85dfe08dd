// What a place does to every stack: read, found by its machines, applied to a profile.

#include "hardware/cluster/site.hpp"

#include <catch2/catch.hpp>

#include "hardware/catalogue.hpp"
#include "hardware/entries.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

Cluster read_with_site(const Json& site) {
  Json cluster{{"node", "dgx-h100"}, {"nodes", 2}};
  if (!site.is_null()) cluster["site"] = site;
  const Document written = Document::from(cluster, "mine.json");
  const Document whole = Document::from(expand_cluster(written.root()), "mine.json");
  return read_cluster(whole.root());
}

}  // namespace

TEST_CASE("A cluster without a site changes nothing of a stack") {
  const Site site = read_with_site(nullptr).site;
  CHECK(site.tensor == 1);
  CHECK(site.network == 1);
  CHECK(site.clock == 1);
  CHECK(site.jitter == Time{});
  CHECK(site.step == Time{});
}

TEST_CASE("A site is a name of the catalogue, or its numbers") {
  CHECK(read_with_site("jean-zay").site.tensor == Approx(2.5));
  const Site own = read_with_site({{"network", 0.5}, {"step", "7 ms"}}).site;
  CHECK(own.network == 0.5);
  CHECK(own.step == Time{7'000'000'000});
  CHECK(own.tensor == 1);
  CHECK_THROWS_AS(read_with_site("atlantis"), InputError);
  CHECK_THROWS_AS(read_with_site({{"network", 0}}), InputError);
  CHECK_THROWS_AS(read_with_site({{"speed", 2}}), InputError);
}

TEST_CASE("Machines that the catalogue has at one site alone are taken to be there") {
  const Cluster cluster = named_cluster("jean-zay");
  CHECK(cluster.site.name == "jean-zay");
  const bool said = std::any_of(cluster.assumptions.begin(), cluster.assumptions.end(),
                                [](const std::string& each) {
                                  return each.rfind("site not stated; jean-zay assumed", 0) == 0;
                                });
  CHECK(said);
}

}  // namespace orrery::hardware
