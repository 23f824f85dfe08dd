#pragma once
// Captures segments of a block (operations launched together, models/program/graph_segments.hpp) as
// CUDA graphs and replays them. A graph holds the operand addresses of its kernels, so it is looked
// up by all of them, and by the loss scale where a kernel reads that. Micro-batches that use the
// same memory share their graphs.
//
// A segment runs operation by operation the first time, because the device may choose algorithms
// and allocate memory then. It is captured the second time and replayed from then on.

#include <functional>
#include <unordered_map>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/device/graphs.hpp"
#include "executor/run/settings.hpp"
#include "models/program/graph_segments.hpp"

namespace orrery::executor {

/// The captured CUDA graphs of one rank.
class GraphCache {
 public:
  /// Program and device outlive it. Without `cuda_graphs` in the plan nothing is ever captured.
  GraphCache(const models::Program& program, Device& device);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  /// A segment and the operands of its kernels.
  struct Known : models::GraphSegment {
    std::vector<models::OperandId> operands;  // read or written by its kernels, each once
    bool reads_loss_scale = false;
  };
  /// The segment that begins with this operation; null: the operation is launched by itself.
  const Known* beginning(std::size_t block, std::size_t operation) const;

  /// Runs a segment on the operands at the addresses in `views`, as a graph or by calling
  /// `kernels`, which launches its operations one by one.
  /// Errors  RunFailure `capturing 'layer.forward' as a CUDA graph: ...`
  void run(std::size_t block, const Known& segment, const std::vector<View>& views,
           double loss_scale, const std::function<void()>& kernels);

  void begin_step() { counts_.launches = 0; }
  const GraphCounts& counts() const { return counts_; }

 private:
  /// What distinguishes one use of a segment from another.
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
  Key asked_;  // the key looked up; a member to reuse its allocation
  GraphCounts counts_;
};

}  // namespace orrery::executor
