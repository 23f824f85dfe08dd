#pragma once
// Rendezvous of ranks in one process: those of a campaign, which `orrery execute` would start as
// processes on one host.

#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/rank_set.hpp"
#include "executor/module/gpu_module.hpp"

namespace orrery::calibrate {

/// Makes ranks, and owns what their fabrics share.
class LocalRendezvous {
 public:
  LocalRendezvous();
  ~LocalRendezvous();

  /// Makes ranks on cores of this machine, connected by "tcp" or "threads". A set of one has no
  /// fabric.
  /// Errors  another name: InputError; no connection: RunFailure
  RankSet::Make cores(const std::string& fabric);
  /// Makes ranks on GPUs, connected by NCCL.
  RankSet::Make gpus(const executor::GpuModule& module);

 private:
  struct RankGroup;
  RankGroup& group(int ranks);

  std::vector<std::unique_ptr<RankGroup>> groups_;
};

}  // namespace orrery::calibrate
