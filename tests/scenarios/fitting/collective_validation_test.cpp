#include "scenarios/fitting/collectives/collective_validation.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <string>
#include <vector>

#include "hardware/curves/measured.hpp"
#include "scenarios/fitting/collectives/collective_fit.hpp"

using namespace orrery;
using namespace orrery::scenarios;

namespace {

constexpr const char* header =
    "id,source,collective,gpu,gpus,nodes,link,nic,bytes,time_us,nccl_version,set_aside\n";

std::vector<MeasuredCollective> rows_of(const std::string& lines) {
  return read_collectives(orrery::Table::parse(header + lines, "rows.csv"));
}

/// Runs over sizes of so many GPUs in one H100 node, with a time of 10 us at every size.
std::string run_of_node(const std::string& collective, int gpus, const std::string& version) {
  std::string lines;
  for (std::int64_t bytes = 512; bytes <= (std::int64_t{1} << 28); bytes *= 4) {
    lines += collective + std::to_string(gpus) + version + std::to_string(bytes) + ",s," +
             collective + ",h100-sxm-80gb," + std::to_string(gpus) + ",1,NVLink4,," +
             std::to_string(bytes) + ",10," + version + ",\n";
  }
  return lines;
}

/// The same rows with the times of the law at these constants.
std::vector<MeasuredCollective> by_model(std::vector<MeasuredCollective> rows,
                                         const CollectiveSystem& planted) {
  for (MeasuredCollective& row : rows) {
    const auto machine = machine_of(row);
    REQUIRE(machine);
    row.seconds = modelled({&row, &*machine}, planted);
  }
  return rows;
}

CollectiveSystem planted_domain() {
  CollectiveSystem system;
  system.base = 11e-6;
  system.step = 2e-6;
  return system;
}

}  // namespace

TEST_CASE("A domain's fit finds the base and the step that were planted") {
  const auto rows =
      by_model(rows_of(run_of_node("reduce_scatter", 8, "") + run_of_node("all_gather", 2, "")),
               planted_domain());
  const auto machine = machine_of(rows.front());
  std::vector<CollectiveSample> samples;
  for (const MeasuredCollective& row : rows) samples.push_back({&row, &*machine});
  const CollectiveSystem found = fit_domain(samples);
  CHECK(*found.base == Approx(11e-6).epsilon(0.01));
  CHECK(*found.step == Approx(2e-6).epsilon(0.01));
}

TEST_CASE("A network's fit finds its latency and its share of the NICs") {
  std::string lines;
  for (const int nodes : {2, 4, 16, 64}) {
    for (std::int64_t bytes = 1024; bytes <= (std::int64_t{1} << 34); bytes *= 8) {
      lines += "r,s,all_reduce,h100-sxm-80gb," + std::to_string(8 * nodes) + "," +
               std::to_string(nodes) + ",NVLink4+IB NDR400,8x400G," + std::to_string(bytes) +
               ",10,,\n";
    }
  }
  CollectiveSystem planted = planted_domain();
  planted.network = 40e-6;
  planted.half_size = 150e-6;
  planted.growth = 0.1;
  planted.efficiency = 0.7;
  const auto rows = by_model(rows_of(lines), planted);
  std::vector<hardware::Cluster> machines;
  machines.reserve(rows.size());
  std::vector<CollectiveSample> samples;
  for (const MeasuredCollective& row : rows) {
    machines.push_back(*machine_of(row));
    samples.push_back({&row, &machines.back()});
  }
  const CollectiveSystem found = fit_fabric(samples, planted_domain());
  CHECK(*found.network == Approx(40e-6).epsilon(0.02));
  CHECK(*found.half_size == Approx(150e-6).epsilon(0.05));
  CHECK(*found.growth == Approx(0.1).epsilon(0.05));
  CHECK(*found.efficiency == Approx(0.7).epsilon(0.02));
}

TEST_CASE("Fewer than eight rows leave the catalogue's constants") {
  const auto rows = rows_of("a,s,all_reduce,h100-sxm-80gb,8,1,NVLink4,,1024,10,,\n");
  const auto machine = machine_of(rows.front());
  CHECK(!fit_domain({{&rows.front(), &*machine}}).base);
}

TEST_CASE("A run's twins are left out with it: another version's times do not move it") {
  // Two versions of all_reduce on 8 GPUs, and an all_gather that alone may tell the constants.
  const std::string lines = run_of_node("all_reduce", 8, "2.1") +
                            run_of_node("all_reduce", 8, "2.2") +
                            run_of_node("all_gather", 8, "2.1");
  auto rows = by_model(rows_of(lines), planted_domain());
  const CurveReport before = validate_collectives(rows, {.reference = rows});
  for (MeasuredCollective& row : rows) {
    if (row.version == "2.2") *row.seconds *= 3;
  }
  const CurveReport after = validate_collectives(rows, {.reference = rows});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].collective != models::Collective::all_reduce) continue;
    INFO(rows[i].id);
    CHECK(*after.rows[i].predicted == *before.rows[i].predicted);
    CHECK(*before.rows[i].predicted == Approx(*before.rows[i].measured).epsilon(0.05));
  }
}

TEST_CASE("A point inside a measured run follows the run, not only the law") {
  // The run is twice the law at all sizes but knows none at 4 KiB: twice the law there too.
  auto rows = by_model(rows_of(run_of_node("all_reduce", 8, "")), planted_domain());
  for (MeasuredCollective& row : rows) *row.seconds *= 2;
  std::vector<MeasuredCollective> known;
  std::vector<MeasuredCollective> asked;
  for (const MeasuredCollective& row : rows) {
    (row.size == Bytes{8192} ? asked : known).push_back(row);
  }
  REQUIRE(asked.size() == 1);
  const CurveReport report = validate_collectives(asked, {.reference = known});
  CHECK(*report.rows[0].predicted == Approx(*asked[0].seconds).epsilon(0.05));
}

TEST_CASE("A network that only one run knows is predicted from others and says so") {
  std::string lines;
  for (const auto& [gpu, link] : {std::pair{"h100-sxm-80gb", "NVLink4+IB NDR400"},
                                  std::pair{"h100-sxm-80gb", "NVLink4+EFA"}}) {
    for (std::int64_t bytes = 1024; bytes <= (std::int64_t{1} << 30); bytes *= 4) {
      lines += "r,s,all_reduce," + std::string{gpu} + ",16,2," + link + ",,";
      lines += std::to_string(bytes) + ",100,,\n";
    }
  }
  const auto rows = rows_of(lines);
  const CurveReport report = validate_collectives(rows, {.reference = rows});
  CHECK(report.rows[0].score_class ==
        "across nodes, network never measured, latency (below 64 KiB)");
  CHECK(report.rows[0].note == "by other networks' constants");
}

TEST_CASE(
    "Nodes whose GPUs have PCIe alone are a class of their own, on one node and over several") {
  const auto rows = rows_of(
      "a,s,all_reduce,l40s,2,1,PCIe4,,1024,10,,\n"
      "b,s,all_reduce,l40s,4,2,PCIe4+RoCE,,1024,10,,\n");
  const CurveReport report = validate_collectives(rows, {.reference = rows});
  CHECK(report.rows[0].score_class == "one PCIe domain, reductions and gathers");
  CHECK(report.rows[1].score_class.starts_with("across PCIe nodes, "));
}

TEST_CASE("A GPU without a machine in the catalogue is listed and not scored") {
  const auto rows = rows_of("a,s,all_reduce,h999,8,1,NVLink9,,1024,10,,\n");
  const CurveReport report = validate_collectives(rows, {.reference = rows});
  CHECK(!report.rows[0].predicted);
  CHECK(report.rows[0].not_scored_because == "no machine for 'h999'");
}

TEST_CASE("A rack of 72 is one domain, two racks are two, whatever their trays") {
  const auto rows = rows_of(
      "a,s,all_reduce,gb200,72,18,NVLink5 NVL72,,1024,10,,\n"
      "b,s,all_reduce,gb200,144,36,NVLink5 NVL72 x2 + IB,,1024,10,,\n"
      "c,s,all_reduce,h100-sxm-80gb,16,2,NVLink4+IB NDR400,,1024,10,,\n");
  CHECK(rows[0].domains() == 1);
  CHECK(rows[1].domains() == 2);
  CHECK(shape_of(rows[1]).ranks_per_node == 72);
  CHECK(shape_of(rows[2]).ranks_per_node == 8);
}

TEST_CASE("Published collectives are predicted by constants that have not seen them", "[slow]") {
  const auto rows = read_collectives(hardware::measured_collectives());
  const Json json = to_json(validate_collectives(rows, {.reference = rows}), {});
  const Json& classes = json["by"]["class"];
  const auto mean = [&](const char* name) {
    return classes[name]["mean_abs_error_pct"].get<double>();
  };
  CHECK(mean("one NVLink domain, reductions and gathers") < 8);
  CHECK(mean("across nodes, network fitted, reductions and gathers") < 12);
  // Two servers of L40S, one source: its run of one GPU a node and that of two, each by the other.
  CHECK(mean("across PCIe nodes, network fitted, reductions and gathers") < 32);
}
