#include "scenarios/command/execute_room.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/execute_backend.hpp"
#include "scenarios/result.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Of the machine, or of the group that this process may use of it.
/// Source  cgroups(7): memory.max is bytes, or "max"
Bytes machine_memory() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  std::int64_t memory = pages * size, limit = 0;
  std::ifstream group{"/sys/fs/cgroup/memory.max"};
  if (group >> limit && limit > 0) memory = std::min(memory, limit);
  return Bytes{memory};
}

std::optional<NoRoom> no_room_on_cores(const models::Prediction& prediction,
                                       const executor::Placement& placed) {
  const models::Mesh& mesh = prediction.program->mesh;
  const bool all_here = placed.launcher == executor::Launcher::alone ||
                        placed.local_ranks.value_or(0) == mesh.ranks();
  Bytes needed{};
  for (std::int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    if (!all_here && rank != placed.rank) continue;
    const auto stage = static_cast<std::size_t>(mesh.stage_of(rank));
    needed = needed + models::total(prediction.memory[stage].program);
  }
  const Bytes available = machine_memory();
  if (needed <= available) return std::nullopt;
  return NoRoom{{.rank = placed.rank, .needed = needed, .available = available}, "this machine"};
}

std::optional<NoRoom> no_room_on_gpus(const models::Prediction& prediction) {
  const executor::VisibleGpu gpu = cuda_module().gpus().front();
  const models::StageMemory& fullest = prediction.memory[prediction.fullest];
  if (fullest.total <= gpu.memory) return std::nullopt;
  const models::Mesh& mesh = prediction.program->mesh;
  return NoRoom{
      {.rank = mesh.first_rank(fullest.stage), .needed = fullest.total, .available = gpu.memory},
      gpu.name};
}

}  // namespace

std::optional<NoRoom> no_room(const models::Question& question, const ExecuteOptions& options,
                              const executor::Placement& placed) {
  const models::Prediction prediction = models::predict(question);
  return options.backend == Backend::cuda ? no_room_on_gpus(prediction)
                                          : no_room_on_cores(prediction, placed);
}

int report(const NoRoom& found, const ExecuteOptions& options) {
  const models::OutOfMemory& memory = found.found;
  if (options.json) {
    const Json out{{"rank", memory.rank},
                   {"needed_bytes", memory.needed.count()},
                   {"available_bytes", memory.available.count()}};
    fmt::print("{}\n", Json{{"fits", false}, {"out_of_memory", out}}.dump(2));
  }
  fmt::print(stderr, "does not fit: {} needed, {} of {} are there\n", format(memory.needed),
             format(memory.available), printable(found.where));
  return exit_answer_is_no;
}

}  // namespace orrery::scenarios
