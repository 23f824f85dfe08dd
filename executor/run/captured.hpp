#pragma once
// Which CUDA graph stands for which stretch of a block (models/program/stretches.hpp). A graph
// holds the addresses that its kernels were given, so a stretch is known by all of them, and by
// the loss's scale where it reads that: equal key, same graph. Micro-batches whose memory is the
// same share their graphs.
//
// The first time a stretch runs operation by operation: a device may choose algorithms and take
// memory then. The second time it is captured.

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/device/graphs.hpp"
#include "executor/run/settings.hpp"
#include "models/program/stretches.hpp"

namespace orrery::executor {

class Captured {
 public:
  /// Both outlive it. Without `cuda_graphs` in the plan nothing is ever captured.
  Captured(const models::Program& program, Device& device);
  ~Captured();
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  /// A stretch, and the arguments of its kernels.
  struct Known : models::Stretch {
    std::vector<models::OperandId> operands;  // each once
    bool reads_loss_scale = false;
  };
  /// The one that begins with an operation of a block; null: the operation runs by itself.
  const Known* beginning(std::size_t block, std::size_t operation) const;

  /// Runs a stretch on the operands where `views` has them. `kernels` runs its operations one by
  /// one on the device.
  /// Errors  RunFailure `capturing 'layer.forward' as a CUDA graph: ...`
  void run(std::size_t block, const Known& stretch, const std::vector<View>& views,
           double loss_scale, const std::function<void()>& kernels);

  void begin_step() { counts_.launches = 0; }
  const GraphCounts& counts() const { return counts_; }

 private:
  /// What distinguishes one use of a stretch from another.
  struct Key {
    std::size_t block = 0, first = 0;
    double loss_scale = 0;  // 0 where it is not read
    std::vector<const std::byte*> operands;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  struct Use {
    bool captured = false;
    Graph graph;
  };

  Graph capture(std::size_t block, const std::function<void()>& kernels);

  const models::Program& program_;
  Graphs* graphs_;
  std::vector<std::vector<Known>> known_;  // by block
  std::unordered_map<Key, Use, Hash> uses_;
  Key asked_;  // kept for its memory
  GraphCounts counts_;
};

}  // namespace orrery::executor
