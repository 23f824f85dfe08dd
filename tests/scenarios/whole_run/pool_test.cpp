#include "scenarios/whole_run/pool.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace orrery::scenarios {

namespace {

RunTime seconds_long(double count) {
  return run_time(Seconds{count});
}

std::vector<NodeEvent> trace(const std::string& name) {
  return read_node_events(
      Table::load(std::string{ORRERY_SOURCE} + "/tests/scenarios/whole_run/" + name));
}

}  // namespace

TEST_CASE("A fleet's faults replayed: uptime, interruptions and waiting") {
  struct Golden {
    std::int64_t active;
    double ettr;
    std::int64_t interruptions;
    double waiting;
  };
  const std::vector<NodeEvent> faults = trace("node_faults.csv");
  REQUIRE(faults.size() == 1168);
  const FleetReplay job{.nodes = 400,
                        .active = 0,
                        .interval = seconds_long(3600),
                        .stall = seconds_long(60),
                        .restart = seconds_long(900),
                        .horizon = seconds_long(345 * 86'400.0)};
  for (const auto& [active, ettr, interruptions, waiting] : {Golden{400, 0, 1, 1},
                                                             {390, 0.687462, 294, 0.277670},
                                                             {384, 0.787824, 350, 0.171521},
                                                             {380, 0.817534, 377, 0.139243},
                                                             {370, 0.937583, 459, 0.012202},
                                                             {360, 0.949298, 460, 0}}) {
    FleetReplay one = job;
    one.active = active;
    const FleetAnswer found = replay(faults, one);
    INFO(active);
    CHECK(found.ettr == Approx(ettr).margin(6e-7));
    CHECK(found.interruptions == interruptions);
    CHECK(found.waiting == Approx(waiting).margin(6e-7));
  }
  FleetReplay fast = job;
  fast.active = 380;
  fast.interval = seconds_long(900);
  fast.stall = seconds_long(10);
  fast.restart = seconds_long(600);
  CHECK(replay(faults, fast).ettr == Approx(0.839164).margin(6e-7));
  std::vector<NodeEvent> hardware = faults;
  std::erase_if(hardware, [](const NodeEvent& each) {
    return each.kind == "Stress Test Failure" || each.kind == "Change" || each.kind == "Test" ||
           each.kind == "Training Task Troubleshooting";
  });
  FleetReplay of_hardware = job;
  of_hardware.active = 380;
  const FleetAnswer found = replay(hardware, of_hardware);
  CHECK(found.ettr == Approx(0.841810).margin(6e-7));
  CHECK(found.interruptions == 326);
  CHECK(found.waiting == Approx(0.118011).margin(6e-7));
}

TEST_CASE("An elastic job on spot instances: the useful share of what is paid") {
  struct Job {
    double interval, stall, reconfigure;
    std::int64_t unit, from, to;
    double useful;
    std::int64_t changes;
  };
  const auto check = [](const std::string& name, double paid, const std::vector<Job>& jobs) {
    const std::vector<NodeEvent> events = trace(name);
    for (const Job& each : jobs) {
      const ElasticJob job{.from = each.from,
                           .to = each.to,
                           .unit = each.unit,
                           .interval = seconds_long(each.interval),
                           .stall = seconds_long(each.stall),
                           .reconfigure = seconds_long(each.reconfigure),
                           .hold = seconds_long(600)};
      const ElasticAnswer found = run_elastic(events, job, events.back().at);
      INFO(name << " " << each.interval << " " << each.reconfigure << " " << each.unit);
      CHECK(found.useful_share() == Approx(each.useful).margin(6e-5));
      CHECK(static_cast<double>(found.changes) ==
            Approx(static_cast<double>(each.changes)).margin(1));
      CHECK(static_cast<double>(found.ledger.paid()) / 3.6e9 == Approx(paid).margin(6e-4));
    }
  };
  check("spot_p3.csv", 273.117,
        {{300, 10, 300, 1, 4, 64, 0.3280, 107},
         {300, 10, 300, 4, 4, 64, 0.3417, 95},
         {300, 10, 300, 8, 8, 64, 0.3344, 90},
         {300, 10, 300, 16, 16, 16, 0.3027, 62},
         {300, 10, 60, 1, 4, 64, 0.5938, 104},
         {300, 10, 60, 4, 4, 64, 0.5797, 93},
         {300, 10, 60, 8, 8, 64, 0.5150, 89},
         {300, 10, 60, 16, 16, 16, 0.3710, 62},
         {60, 1, 60, 1, 4, 64, 0.7086, 108},
         {60, 1, 60, 4, 4, 64, 0.6830, 97},
         {60, 1, 60, 8, 8, 64, 0.6181, 93},
         {60, 1, 60, 16, 16, 16, 0.4501, 62}});
  check("spot_g4dn.csv", 135.683,
        {{60, 1, 60, 1, 4, 64, 0.7875, 72},
         {60, 1, 60, 4, 4, 64, 0.7316, 55},
         {60, 1, 60, 8, 8, 64, 0.6486, 42},
         {60, 1, 60, 16, 16, 16, 0.2771, 19}});
}

TEST_CASE("Notice of a node's end saves the work since the last checkpoint") {
  std::vector<NodeEvent> events;
  for (std::int64_t node = 0; node < 4; ++node) {
    events.push_back({RunTime{}, NodeChange::up, node});
  }
  events.push_back({seconds_long(1000), NodeChange::down, 3});
  events.push_back({seconds_long(3000), NodeChange::down, 2});
  ElasticJob job{
      .from = 1, .to = 4, .unit = 1, .interval = seconds_long(900), .stall = seconds_long(10)};
  const ElasticAnswer without = run_elastic(events, job, events.back().at);
  job.notice = seconds_long(30);
  const ElasticAnswer with = run_elastic(events, job, events.back().at);
  // Of 1,000 s on four nodes 910 are saved: 90 x 4 lost; of 2,000 s on three 2 x 910: 180 x 3.
  CHECK(without.ledger.lost == seconds_long(90 * 4 + 180 * 3).count());
  CHECK(with.ledger.lost == 0);
  CHECK(with.ledger.paid() == without.ledger.paid());
}

TEST_CASE("A drawn market takes nodes at its rate, several at once") {
  // 64 nodes for 10,000 h at 0.1 an hour: 64,000 in all if all were there; refilled in 36 s.
  Draws draws{4};
  const SpotMarket market{.nodes = 64, .per_node_hour = 0.1, .drop = 4, .refill = Seconds{36}};
  const std::vector<NodeEvent> events = draw_market(market, seconds_long(10'000 * 3600.0), draws);
  std::int64_t taken = 0;
  for (const NodeEvent& each : events) taken += each.change == NodeChange::down ? 1 : 0;
  CHECK(static_cast<double>(taken) == Approx(64'000).epsilon(0.03));
}

TEST_CASE("Events of nodes are refused with their line") {
  const auto read = [](const std::string& rows) {
    return read_node_events(Table::parse("time_ms,event,node\n" + rows, "pool.csv"));
  };
  CHECK(read("5,add,1\n7,remove,1\n").size() == 2);
  CHECK_THROWS_WITH(read("5,gone,1\n"),
                    "pool.csv:line 2: column 'event': expected fault_start, "
                    "fault_end, add or remove, found \"gone\"");
  CHECK_THROWS(read("-1,add,1\n"));
}

}  // namespace orrery::scenarios
