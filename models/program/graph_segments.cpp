#include "models/program/graph_segments.hpp"

#include <algorithm>
#include <array>

namespace orrery::models {

namespace {

/// Cuts one block into segments, keeping track of what its compute queue has waited for.
class GraphCutter {
 public:
  explicit GraphCutter(const Block& block) : block_{block} {}

  std::vector<GraphSegment> cut() {
    for (std::size_t i = 0; i < block_.operations.size(); ++i) {
      const Operation& op = block_.operations[i];
      if (op.queue != Lane::compute) {
        open_ = false;
        continue;
      }
      if (op.host_waits || waits(op)) open_ = false;
      if (op.host_waits) continue;
      if (!open_) found_.push_back({i, i});
      open_ = true;
      found_.back().end = i + 1;
    }
    return std::move(found_);
  }

 private:
  /// Does it wait for another queue's operation that the compute queue has not yet waited for?
  /// Queues are in order: a wait for one operation covers all earlier ones of its queue.
  bool waits(const Operation& op) {
    bool fresh = false;
    for (const OpId id : op.after) {
      if (id == block_input || block_.operations[id].queue == Lane::compute) continue;
      std::size_t& known = known_[static_cast<std::size_t>(block_.operations[id].queue)];
      fresh = fresh || id >= known;
      known = std::max<std::size_t>(known, id + std::size_t{1});
    }
    return fresh;
  }

  const Block& block_;
  std::array<std::size_t, lane_count> known_{};  // operations before these have ended, by queue
  std::vector<GraphSegment> found_;
  bool open_ = false;  // can the last segment be extended?
};

}  // namespace

std::vector<GraphSegment> graph_segments(const Program& program, std::size_t block) {
  const bool of_model = program.use_of(static_cast<std::uint32_t>(block)).kind != nullptr;
  if (!program.graphs || !of_model) return {};
  return GraphCutter{program.blocks[block]}.cut();
}

}  // namespace orrery::models
