#include "hardware/curves/measured.hpp"

#include <string>
#include <string_view>

#include "hardware/embedded.hpp"
#include "sim/errors.hpp"

namespace orrery::hardware {

namespace {

Table embedded_table(std::string_view name) {
  const std::string path = "hardware/measured/" + std::string{name};
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == path) return Table::parse(file.text, path);
  }
  throw ContractError{"a measured table is not inside the program"};
}

}  // namespace

const Table& measured_kernels() {
  static const Table table = embedded_table("kernels.csv");
  return table;
}

const Table& measured_collectives() {
  static const Table table = embedded_table("collectives.csv");
  return table;
}

const Table& measured_rates() {
  static const Table table = embedded_table("rates.csv");
  return table;
}

const Table& measured_sources() {
  static const Table table = embedded_table("sources.csv");
  return table;
}

}  // namespace orrery::hardware
