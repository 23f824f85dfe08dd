#pragma once
// A pipeline schedule as a CSV file, as PyTorch's pipelining writes it: one line for each rank, one
// cell for each slot. A cell is a chunk (PyTorch's "stage"), a letter and a micro-batch: F forward,
// B the whole backward, I its input gradient only, W its weight gradient. Empty cells are bubbles
// and are ignored: what a rank waits for follows from the order. Cells of transfers and of FSDP are
// refused; the lowering adds those.
// Source  torch.distributed.pipelining.schedules, _PipelineScheduleRuntime of PyTorch 2.5

#include <string>
#include <string_view>
#include <vector>

#include "models/schedules/schedule.hpp"

namespace orrery::models {

/// A schedule stated slot by slot, as in a file.
struct ScheduleTable {
  std::vector<Slots> slots;  // by stage
  std::int64_t chunks = 0, micro_batches = 0;

  bool empty() const { return slots.empty(); }
  bool splits_backward() const;
  /// The stage of each chunk.
  std::vector<std::int64_t> stages() const;
};

/// Reads a file of at most 64 MiB.
/// Errors  those of parse_schedule; unreadable
ScheduleTable load_schedule(const std::string& path);
/// Parses the text of such a file; `name` is for errors.
/// Errors  `file:line 2: ...`: a cell that is no slot, a slot given twice, a chunk on two ranks, a
///         slot that is missing or out of order, ranks that wait for each other
ScheduleTable parse_schedule(std::string_view text, const std::string& name);

/// Writes the slots of all ranks in that format.
std::string to_csv(const std::vector<Slots>& slots);

}  // namespace orrery::models
