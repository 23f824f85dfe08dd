// Traffic in a step: folded, unfolded and the naive oracle agree to the picosecond.

#include <catch2/catch.hpp>

#include <random>
#include <string>
#include <utility>

#include "models/evaluation/replay.hpp"
#include "models/evaluation/traffic/evaluate.hpp"
#include "models/evaluation/traffic/prefix.hpp"
#include "tests/models/evaluation/traffic/network_oracle.hpp"
#include "tests/models/evaluation/traffic/random_site.hpp"
#include "tests/slow_build.hpp"

namespace orrery::models {
namespace {

/// The first thing that differs from the oracle; empty if nothing does.
std::string difference(const PricedProgram& priced, const Traffic& traffic,
                       const NetworkTimes& found, const OracleTimes& oracle) {
  const Program& program = *priced.program;
  const std::size_t replicas = traffic.folded.size() / program.classes.size();
  for (std::size_t r = 0; r < oracle.ranks.size(); ++r) {
    if (found.ranks[traffic.folded[r]] != oracle.ranks[r]) return "rank " + std::to_string(r);
  }
  for (std::size_t e = 0; e < oracle.transfers.size(); ++e) {
    const std::size_t from = program.channels[e / replicas].from * replicas + e % replicas;
    const std::uint32_t id =
        traffic.ranks[traffic.folded[from]].channel(static_cast<std::uint32_t>(e / replicas));
    if (found.transfers[id] != oracle.transfers[e]) return "channel " + std::to_string(e);
  }
  std::vector<std::uint32_t> place;
  std::vector<std::uint32_t> next(traffic.groups.size(), 0);
  for (const FoldedGroup& group : traffic.groups) place.push_back(next[group.split]++);
  for (std::size_t j = 0; j < oracle.starts.size(); ++j) {
    for (const std::uint32_t c : program.collectives[j].classes) {
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        const std::size_t r = c * replicas + replica;
        const std::uint32_t g = traffic.ranks[traffic.folded[r]].group(traffic.split_of_joint[j]);
        const bool same = found.collective_starts[j][place[g]] == oracle.starts[j][r] &&
                          found.collective_ends[j][place[g]] == oracle.ends[j][r];
        if (!same) return "collective " + std::to_string(j) + " of rank " + std::to_string(r);
      }
    }
  }
  return "";
}

/// Where the queues stand when each class of the reported replica is replayed.
std::vector<QueueTimes> replayed(const PricedProgram& priced, const StepTimes& times) {
  std::vector<QueueTimes> ranks;
  for (std::uint32_t c = 0; c < times.ranks.size(); ++c) {
    Chain<NumberTime> last{};
    const auto note = [&](const InstructionRecord& record) { last = record.after; };
    replay(priced, times, c, {.instruction = note, .operation = nullptr});
    ranks.push_back(queue_times(last));
  }
  return ranks;
}

/// Of the jobs that can delay ours.
bool same_other_steps(const Traffic& traffic, const NetworkTimes& found,
                      const OracleTimes& oracle) {
  for (std::size_t i = 0; i < traffic.others.size(); ++i) {
    if (found.other_steps[i] != oracle.other_steps[traffic.other_of_site[i]]) return false;
  }
  return true;
}

struct Tally {
  int ranks = 0, contended = 0, folded = 0, maps_exact = 0, railed = 0, inside = 0, joined = 0,
      repeated = 0, prefix = 0, prefix_inside = 0, prefix_joined = 0, cabled = 0;
};

/// Folded ranks of all jobs.
std::size_t distinct_ranks(const Traffic& traffic) {
  std::size_t ranks = traffic.ranks.size();
  for (const JobTraffic& other : traffic.others) ranks += other.ranks.size();
  return ranks;
}

/// Reports too are those of a step that is never folded further than the whole of it allows.
void require_same_without_prefix(Traffic folded, const NetworkTimes& found, Tally& tally) {
  ++tally.prefix;
  tally.prefix_inside += folded.block_collectives.kinds > 0 ? 1 : 0;
  tally.prefix_joined += folded.others.empty() ? 0 : 1;
  REQUIRE(distinct_ranks(folded.prefix->traffic) < distinct_ranks(folded));
  folded.prefix = nullptr;
  const NetworkTimes whole = evaluate_network(folded);
  REQUIRE(found.times.step == whole.times.step);
  REQUIRE(found.lost == whole.lost);
  REQUIRE(found.overloaded == whole.overloaded);
  for (std::size_t id = 0; id < found.lost_to.size(); ++id) {
    double shares = 0;
    for (const auto& [other, share] : found.lost_to[id]) shares += share;
    REQUIRE((found.lost_to[id].empty() || shares == Approx(1)));
  }
}

void require_exact(const NetworkWorld& world, Tally& tally) {
  const PricedProgram& priced = world.made.priced;
  const OracleTimes oracle = oracle_times(priced, world.site);
  const Traffic every = traffic_of(priced, world.site, Folding::none);
  const Traffic folded = traffic_of(priced, world.site);
  const NetworkTimes unfolded = evaluate_network(every);
  REQUIRE(difference(priced, every, unfolded, oracle) == "");
  REQUIRE(same_other_steps(every, unfolded, oracle));
  tally.ranks += static_cast<int>(oracle.ranks.size());
  tally.contended += oracle.contended > 0 ? 1 : 0;
  tally.cabled += world.site.inside.empty() ? 0 : 1;
  if (folded.maps_exact) {
    ++tally.maps_exact;
    const StepTimes maps = evaluate_maps(priced);
    const std::size_t replicas = oracle.ranks.size() / maps.ranks.size();
    for (std::size_t r = 0; r < oracle.ranks.size(); ++r) {
      REQUIRE(maps.ranks[r / replicas] == oracle.ranks[r]);
    }
    return;
  }
  tally.folded += folded.ranks.size() < oracle.ranks.size() ? 1 : 0;
  tally.railed += folded.rails > 1 ? 1 : 0;
  tally.inside += folded.block_collectives.kinds > 0 ? 1 : 0;
  const NetworkTimes found = evaluate_network(folded);
  REQUIRE(difference(priced, folded, found, oracle) == "");
  REQUIRE(same_other_steps(folded, found, oracle));
  tally.joined += folded.others.empty() ? 0 : 1;
  for (const auto& ends : found.other_steps) tally.repeated += ends.size() > 1 ? 1 : 0;
  REQUIRE(replayed(priced, found.times) == found.times.ranks);
  if (folded.prefix) require_same_without_prefix(folded, found, tally);
}

void require_exact(std::uint64_t seed, Tally& tally) {
  INFO("seed " << seed);
  require_exact(random_world(seed), tally);
}

TEST_CASE("Traffic of random worlds: folded, unfolded and the oracle agree to the picosecond") {
  Tally tally;
  const std::uint64_t seeds = thinned(60);
  for (std::uint64_t seed = 0; seed < seeds; ++seed) require_exact(seed, tally);
  const int share = static_cast<int>(seeds) / 10;
  CHECK(tally.contended > share);
  CHECK(tally.folded > share);
  CHECK(tally.maps_exact > 0);
  CHECK(tally.railed > 0);
  CHECK(tally.inside > 0);
  CHECK(tally.joined > 0);
  CHECK(tally.repeated > 0);
  CHECK(tally.prefix > 0);
  CHECK(tally.cabled > 0);
}

TEST_CASE(
    "Until our first joint collective fewer ranks are distinguished, next to other jobs and "
    "experts") {
  Tally tally;
  const auto few = [&] { return tally.prefix_inside == 0 || tally.prefix_joined == 0; };
  for (std::uint64_t seed = 0; few() && seed < 2'000; ++seed) {
    const NetworkWorld world = random_world(seed);
    const Traffic folded = traffic_of(world.made.priced, world.site);
    if (!folded.prefix || (folded.others.empty() && folded.block_collectives.kinds == 0)) continue;
    INFO("seed " << seed);
    require_exact(world, tally);
  }
  CHECK(tally.prefix_inside > 0);
  CHECK(tally.prefix_joined > 0);
}

TEST_CASE("Replicas of experts that hold parts of tensor groups keep rails from standing for all") {
  // Three rails and tensor groups of three, experts cut in two: their replicas cross rails.
  Tally tally;
  require_exact(11465, tally);
  CHECK(tally.railed == 0);
}

TEST_CASE("A host that waits inside a phase leaves it before its last collective has ended") {
  // It waits for each block's first collective and not for the others, and posts receives next.
  Tally tally;
  for (std::uint64_t seed = 0; tally.inside < 6 && seed < 400; ++seed) {
    NetworkWorld world = random_world(seed);
    for (Block& block : world.made.program->blocks) {
      bool first = true;
      for (Operation& each : block.operations) {
        if (each.kind != OpKind::collective) continue;
        each.host_waits = std::exchange(first, false);
      }
    }
    if (traffic_of(world.made.priced, world.site).block_collectives.kinds == 0) continue;
    INFO("seed " << seed);
    require_exact(world, tally);
  }
  CHECK(tally.inside == 6);
}

TEST_CASE("A host that waits in one block leaves the blocks after it before their ends are known") {
  // It waits for the first collective of the first block alone, and posts receives after the phase.
  Tally tally;
  for (std::uint64_t seed = 0; tally.inside < 40 && seed < 4'000; ++seed) {
    NetworkWorld world = random_world(seed);
    bool first = true;
    for (Block& block : world.made.program->blocks) {
      for (Operation& each : block.operations) {
        each.host_waits = each.kind == OpKind::collective && std::exchange(first, false);
      }
    }
    if (traffic_of(world.made.priced, world.site).block_collectives.kinds == 0) continue;
    INFO("seed " << seed);
    require_exact(world, tally);
  }
  CHECK(tally.inside == 40);
}

TEST_CASE("A host that waits anywhere in its phases is exact") {
  Tally tally;
  std::uint32_t waits = 0;
  for (std::uint64_t seed = 0; tally.inside < 60 && seed < 6'000; ++seed) {
    NetworkWorld world = random_world(seed);
    std::mt19937 random{static_cast<std::uint32_t>(seed)};
    const std::uint32_t of = 1 + random() % 6;
    for (Block& block : world.made.program->blocks) {
      for (Operation& each : block.operations) {
        each.host_waits = random() % of == 0;
        waits += each.host_waits ? 1 : 0;
      }
    }
    if (traffic_of(world.made.priced, world.site).block_collectives.kinds == 0) continue;
    INFO("seed " << seed);
    require_exact(world, tally);
  }
  CHECK(tally.inside == 60);
  CHECK(waits > 100);
}

/// In pieces: `models_test "Traffic is exact*" -c "worlds from 12000"`.
TEST_CASE("Traffic is exact on 10,000 more random worlds", "[slow]") {
  constexpr std::uint64_t piece = 500;
  for (std::uint64_t first = 10'000; first < 20'000; first += piece) {
    DYNAMIC_SECTION("worlds from " << first) {
      Tally tally;
      for (std::uint64_t seed = first; seed < first + piece; ++seed) require_exact(seed, tally);
      WARN(tally.ranks << " ranks, " << tally.contended << " worlds with contention, "
                       << tally.folded << " folded, " << tally.railed << " by one rail, "
                       << tally.inside << " with collectives inside blocks, " << tally.joined
                       << " next to other jobs, " << tally.repeated
                       << " of which took several steps, " << tally.prefix
                       << " folded further before joint collectives, " << tally.cabled
                       << " with PCIe trees inside nodes, " << tally.maps_exact << " maps_exact");
    }
  }
}

}  // namespace
}  // namespace orrery::models
