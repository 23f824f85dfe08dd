#pragma once
// Where ranks of one process meet: those of a campaign, which `orrery execute` would start as
// processes on one host.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/rank_set.hpp"
#include "executor/module/cuda_entry.hpp"

namespace orrery::calibrate {

/// Makes ranks, and keeps what their fabrics share while it lives.
class Worlds {
 public:
  Worlds();
  ~Worlds();

  /// Cores of this machine that reach each other by "tcp" or "threads". A set of one has no fabric.
  /// Errors  another name: InputError; no connection: RunFailure
  RankSet::Make cores(const std::string& fabric);
  /// GPUs that reach each other by NCCL.
  RankSet::Make gpus(const executor::CudaModule& module);

 private:
  struct World;
  World& world(int ranks);

  std::vector<std::unique_ptr<World>> worlds_;
};

}  // namespace orrery::calibrate
