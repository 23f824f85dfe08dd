// Tables of nccl-tests that do not name their collective.
#include <catch2/catch.hpp>

#include "tests/calibrate/refusal.hpp"

namespace orrery::calibrate {
namespace {

using testing::refused_log;

/// Rows of equal bandwidths, the factor of a reduce and of an all-reduce of two ranks; `root` is
/// the column of that name, as the header has it and as the row has it.
std::string equal_bandwidths(const std::string& names, const std::string& root) {
  return "# size count type redop " + names +
         " time algbw busbw error time algbw busbw error\n1073741824 268435456 float sum " + root +
         " 10737.4 100.00 100.00 0e+00 10737.4 100.00 100.00 0e+00\n";
}

TEST_CASE("A sum is taken for a reduce by its root, and refused where the log does not say") {
  const Imported reduce = import_text(equal_bandwidths("root", "0"), "a.log");
  CHECK(reduce.samples.front().quantity == "reduce");
  CHECK_FALSE(reduce.samples.front().ranks);
  CHECK(reduce.notes.front() == "collective not stated; reduce recognised by its columns");
  const Imported two = import_text(equal_bandwidths("root", "-1"), "a.log");
  CHECK(two.samples.front().quantity == "all_reduce");
  CHECK(two.samples.front().ranks == 2);
  // Old releases have no such column; before 2.9 a reduce-scatter had equal bandwidths, too.
  const std::string old = equal_bandwidths("", "");
  CHECK(refused_log(old) ==
        "a.log: the log does not name its collective, and its columns fit all_reduce, "
        "reduce_scatter; add the command line, such as all_reduce_perf with its flags, as the "
        "first line");
  for (const std::string name : {"reduce", "all_reduce"}) {
    const Imported named = import_text("./build/" + name + "_perf -g 8\n" + old, "a.log");
    CHECK(named.samples.front().quantity == name);
  }
}

/// A collective's table as one of its releases prints it: the columns before the first time, and
/// the cells that it has there.
struct PrintedTable {
  std::string operation, columns, cells;
  double bus = 0;  // GB/s, of 100.00
  bool checks_in_place = true;
};

std::string printed(const PrintedTable& table, bool checked) {
  const std::string bus = std::to_string(table.bus).substr(0, 5);
  const auto half = [&](bool checks) {
    return " 10737.4 100.00 " + bus + (checked && checks ? " 0" : " N/A");
  };
  return "# size count type " + table.columns +
         " time algbw busbw #wrong time algbw busbw #wrong\n" + "1073741824 268435456 float " +
         table.cells + half(true) + half(table.checks_in_place) + "\n";
}

TEST_CASE("Every release's tables name their collective by columns, roots and bandwidths") {
  // 8 ranks: 7/8 and 2 * 7/8. Since 2.13 all tables have both columns; before, only their own.
  const PrintedTable tables[] = {{"all_gather", "redop root", "none -1", 87.5},
                                 {"all_to_all", "redop root", "none -1", 87.5, false},
                                 {"broadcast", "redop root", "none 0", 100},
                                 {"gather_or_scatter", "redop root", "none 0", 87.5},
                                 {"reduce", "redop root", "sum 0", 100},
                                 {"reduce_scatter", "redop root", "sum -1", 87.5},
                                 {"all_reduce", "redop root", "prod -1", 175},
                                 {"send_receive", "redop root", "sum -1", 100, false},
                                 {"hypercube", "redop root", "-1", 100},    // its redop is blank
                                 {"all_gather", "redop root", "-1", 87.5},  // 2.13.0: blank, too
                                 {"all_gather", "", "", 87.5},              // 2.9 to 2.12
                                 {"send_receive", "", "", 100, false},
                                 {"broadcast", "root", "0", 100},
                                 {"gather_or_scatter", "root", "3", 87.5},
                                 {"reduce", "redop root", "sum 0", 100},
                                 {"reduce_scatter", "redop", "sum", 87.5},
                                 {"all_reduce", "redop", "sum", 175},
                                 {"all_to_all", "redop", "", 87.5, false}};
  for (const PrintedTable& each : tables) {
    INFO(each.operation << " with columns '" << each.columns << "'");
    const Imported log = import_text(printed(each, true), "a.log");
    REQUIRE(log.samples.size() == 2);
    CHECK(log.samples.front().quantity == each.operation);
    const bool counted = each.bus != 100;  // equal bandwidths say nothing about ranks
    CHECK(log.samples.front().ranks == (counted ? std::optional<std::int64_t>{8} : std::nullopt));
  }
}

TEST_CASE("A table of results out of place alone says nothing of checks in place") {
  const std::string table =
      "# size count type redop root time algbw busbw #wrong\n"
      "1073741824 268435456 float sum -1 10737.4 100.00 175.00 0\n";
  const Imported log = import_text(table, "a.log");
  CHECK(log.samples.size() == 1);
  CHECK(log.samples.front().quantity == "all_reduce");
  CHECK(log.samples.front().ranks == 8);
}

TEST_CASE("Without checked results an all-to-all's table is an all-gather's, and old ones differ") {
  const Imported modern =
      import_text(printed({"", "redop root", "none -1", 87.5}, false), "gather.log");
  CHECK(modern.samples.front().quantity == "all_gather");
  CHECK(modern.notes.front() == "the log does not name its collective; all_gather assumed");
  CHECK(import_text(printed({"", "redop root", "none -1", 87.5}, false), "alltoall.log")
            .samples.front()
            .quantity == "all_to_all");
  // Before 2.13 only the all-to-all had the column, with a blank cell.
  CHECK(import_text(printed({"", "redop", "", 87.5}, false), "a.log").samples.front().quantity ==
        "all_to_all");
  CHECK(import_text(printed({"", "", "", 87.5}, false), "a.log").samples.front().quantity ==
        "all_gather");
}

TEST_CASE("A program on the command line names the collective, whatever launches it") {
  const std::string table = printed({"", "redop root", "none 0", 87.5}, true);
  for (const std::string name : {"scatter", "gather"}) {
    const Imported log = import_text(
        "srun --mpi=pmix /opt/nccl-tests/build/" + name + "_perf -b 8\n" + table, "a.log");
    CHECK(log.samples.front().quantity == name);
    CHECK(log.samples.front().ranks == 8);
  }
  // A script may name all that it will run: the one that fits its table counts.
  const std::string script = "for t in all_reduce_perf broadcast_perf hypercube_perf; do\n";
  const Imported log =
      import_text(script + printed({"", "redop root", "none 0", 100}, true), "a.log");
  CHECK(log.samples.front().quantity == "broadcast");
}

TEST_CASE("Small bandwidths count as far as their two decimals say") {
  // 0.26 and 0.26 of two ranks: an all-gather's would be 0.13.
  const std::string rows =
      "#  Rank  0 Group  0 Pid   1 on node-a device  0 [0x31] NVIDIA A40\n"
      "#  Rank  1 Group  0 Pid   1 on node-b device  0 [0x31] NVIDIA A40\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "8192 2048 float sum -1 31.76 0.26 0.26 0 31.59 0.26 0.26 N/A\n";
  const Imported log = import_text(rows, "a.log");
  CHECK(log.samples.front().quantity == "send_receive");
  CHECK(log.samples.front().ranks == 2);
}

}  // namespace
}  // namespace orrery::calibrate
