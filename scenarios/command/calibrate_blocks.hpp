#pragma once
// What a calibration of the CPU times: the blocks of small GPTs and Llamas as this project lowers
// them for its own executor, over widths, lengths, batches and cuts.

#include <memory>
#include <vector>

#include "calibrate/campaign.hpp"
#include "models/program/program.hpp"
#include "models/software/software.hpp"

namespace orrery::scenarios {

/// Programs own the blocks; they stay while the campaign runs.
struct CalibrationBlocks {
  std::vector<std::unique_ptr<models::Program>> programs;
  std::vector<std::unique_ptr<models::Block>> experts;
  std::vector<calibrate::NamedBlock> blocks;
};

CalibrationBlocks calibration_blocks(const models::Software& software);

}  // namespace orrery::scenarios
