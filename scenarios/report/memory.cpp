#include <fmt/format.h>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t gauge_columns = 12;

std::string gibibytes(Bytes bytes) {
  return fmt::format("{:.2f}", static_cast<double>(bytes.count()) / static_cast<double>(1 << 30));
}

}  // namespace

std::string memory_section(const ReportInputs& in) {
  std::vector<TextTable::Column> columns{"stage"};
  for (int i = 0; i < models::buffer_kind_count; ++i) {
    columns.push_back({std::string{models::name(static_cast<models::BufferKind>(i))}});
  }
  columns.insert(columns.end(), {"context", "fragments", "total", "<"});
  TextTable table{std::move(columns)};
  const Bytes available = in.question.cluster.gpu().memory;
  for (const models::StageMemory& stage : in.prediction.memory) {
    std::vector<std::string> cells{fmt::format("{}", stage.stage)};
    for (const Bytes bytes : stage.program) cells.push_back(gibibytes(bytes));
    cells.insert(cells.end(),
                 {gibibytes(stage.context), gibibytes(stage.fragmentation), gibibytes(stage.total),
                  bar(0, ratio(stage.total, available), gauge_columns)});
    table.add(std::move(cells));
  }
  return heading(
             fmt::format("Memory by stage at its peak, GiB; a GPU has {}", gibibytes(available)),
             in.options) +
         table.text(in.options.colour) +
         legend(
             "staging: transfers in progress; workspace: scratch memory of one kernel; context: "
             "CUDA, its libraries and NCCL's buffers; fragments: lost to the allocator's "
             "fragmentation; bar: total over the GPU's memory",
             in.options);
}

}  // namespace orrery::scenarios
