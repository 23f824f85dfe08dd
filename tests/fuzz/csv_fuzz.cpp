// Tables: what is read has as many cells as the header says, and every cell has a place.
#include "sim/input/csv.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Table table = Table::parse(text_of(data, size), "fuzz.csv");
    for (std::size_t index = 0; index < table.size(); ++index) {
      for (const std::string& column : table.columns()) {
        survives([&] { table[index].integer(column); });
        survives([&] { table[index].number(column); });
        survives([&] { table[index].fail_expected(column, "nothing"); });
      }
    }
  });
  return 0;
}
