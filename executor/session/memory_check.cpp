#include "executor/session/memory_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "executor/session/devices.hpp"

namespace orrery::executor {

namespace {

/// Memory of the machine, or the limit of this process's control group.
/// Source  cgroups(7): memory.max is bytes, or "max"
Bytes machine_memory() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGE_SIZE);
  std::int64_t memory = pages * size, limit = 0;
  std::ifstream group{"/sys/fs/cgroup/memory.max"};
  if (group >> limit && limit > 0) memory = std::min(memory, limit);
  return Bytes{memory};
}

/// The ranks on this host: all of a run without a launcher; with one, as many as it says, that
/// follow each other; this one alone where it does not say.
struct RanksHere {
  std::int64_t first = 0, count = 1;

  RanksHere(const Placement& placed, std::int64_t ranks) : first{placed.rank} {
    if (placed.launcher == Launcher::alone) {
      first = 0;
      count = ranks;
    } else if (placed.local_ranks) {
      count = std::clamp<std::int64_t>(*placed.local_ranks, 1, ranks);
      first =
          std::clamp<std::int64_t>(placed.rank - placed.local_rank.value_or(0), 0, ranks - count);
    }
  }
};

std::optional<NoRoom> no_room_on_cores(const models::Prediction& prediction,
                                       const Placement& placed) {
  const models::Mesh& mesh = prediction.program->mesh;
  const RanksHere here{placed, mesh.ranks()};
  Bytes needed{};
  for (std::int64_t rank = here.first; rank < here.first + here.count; ++rank) {
    const auto stage = static_cast<std::size_t>(mesh.stage_of(rank));
    needed = needed + models::total(prediction.memory[stage].program);
  }
  const Bytes available = machine_memory();
  if (needed <= available) return std::nullopt;
  return NoRoom{{.rank = placed.rank, .needed = needed, .available = available}, "this machine"};
}

std::optional<NoRoom> no_room_on_gpus(const models::Prediction& prediction,
                                      const GpuModule& module) {
  const VisibleGpu gpu = module.gpus().front();
  const models::StageMemory& fullest = prediction.memory[prediction.fullest];
  if (fullest.total <= gpu.memory) return std::nullopt;
  const models::Mesh& mesh = prediction.program->mesh;
  return NoRoom{
      {.rank = mesh.first_rank(fullest.stage), .needed = fullest.total, .available = gpu.memory},
      gpu.name};
}

}  // namespace

std::optional<NoRoom> no_room(const models::Question& question, Backend backend,
                              const Placement& placed) {
  const models::Prediction prediction = models::predict(question);
  return backend.has_gpus() ? no_room_on_gpus(prediction, backend.module())
                            : no_room_on_cores(prediction, placed);
}

}  // namespace orrery::executor
