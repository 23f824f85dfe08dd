#pragma once
// What a calibration of GPUs times: the blocks of models from small to a billion parameters as
// this project lowers them for its own executor, and single products and attentions of the widths
// of larger ones, as tensor ranks of those have them. The shipped plans of one GPU come first.

#include <memory>
#include <vector>

#include "calibrate/gpu/queue_work.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::scenarios {

/// Programs and blocks own what the timed blocks point to; they stay while the campaign runs.
struct GpuBlocks {
  std::vector<std::unique_ptr<models::Program>> programs;
  std::vector<std::unique_ptr<models::Block>> single;  // made of those
  std::vector<calibrate::TimedBlock> blocks, operations, launches, loads;
};

/// widest  models of a larger hidden size are left out
GpuBlocks gpu_blocks(const models::Software& software, hardware::Generation generation,
                     std::int64_t widest);

}  // namespace orrery::scenarios
