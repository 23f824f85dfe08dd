#include "hardware/curves/measured_collectives.hpp"

#include <algorithm>

#include "hardware/curves/calibration.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

namespace {

CollectiveTable read_table(const Node& table) {
  table.only({"operation", "ranks", "nodes", "points", "notes", "sources"});
  CollectiveTable read;
  read.operation = measured_operations[table["operation"].one_of(measured_operations)];
  read.ranks = static_cast<int>(table["ranks"].integer(2, 1 << 20));
  read.nodes = static_cast<int>(table.integer_or("nodes", 1, read.ranks, 1));
  read.times = read_size_table(table["points"]);
  return read;
}

}  // namespace

std::vector<CollectiveTable> read_collective_tables(const Node& tables) {
  std::vector<CollectiveTable> read;
  for (const Node& each : tables.elements()) {
    CollectiveTable table = read_table(each);
    const bool twice = std::ranges::any_of(read, [&](const CollectiveTable& other) {
      return other.operation == table.operation && other.ranks == table.ranks &&
             other.nodes == table.nodes;
    });
    if (twice) each.fail("this operation is given twice for so many ranks and nodes");
    read.push_back(std::move(table));
  }
  return read;
}

}  // namespace orrery::hardware
