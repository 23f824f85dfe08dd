#pragma once
// Transfers to and from the neighbouring stages: a receive is waited for by the phase after it, a
// send when its memory is bound again.

#include <cstddef>
#include <vector>

#include "executor/layout/memory_plan.hpp"
#include "executor/run/calls.hpp"
#include "executor/run/groups.hpp"

namespace orrery::executor {

class Pipe {
 public:
  Pipe(const models::Program& program, const models::RankClass& ranks,
       const std::vector<Group>& groups, const MemoryPlan& plan, Device& device, Fabric& fabric,
       Recording& recording, Calls& calls)
      : program_{program},
        ranks_{ranks},
        groups_{groups},
        plan_{plan},
        device_{device},
        fabric_{fabric},
        recording_{recording},
        calls_{calls} {}

  /// Into and out of buffers of the arena.
  void send(models::Token i, std::byte* arena);
  void receive(models::Token i, std::byte* arena);

  void begin_step() { next_reuse_ = 0; }
  /// Before an instruction binds memory, the sends that it held have left it.
  void before_binding(models::Token i);
  void wait_for_sends();
  void wait_for_arrivals();

 private:
  const models::Program& program_;
  const models::RankClass& ranks_;
  const std::vector<Group>& groups_;
  const MemoryPlan& plan_;
  Device& device_;
  Fabric& fabric_;
  Recording& recording_;
  Calls& calls_;
  std::vector<PendingCall> sends_, arrivals_;
  std::size_t next_reuse_ = 0;
};

}  // namespace orrery::executor
