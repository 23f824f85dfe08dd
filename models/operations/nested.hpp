#pragma once
// A block as a part of another: its operands and operations under a prefix, but those that are the
// other's own. So modules of layers stand inside what comes before or after the model's layers.

#include <string>
#include <string_view>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::models {

/// An operand of the part and the one of the whole that it is.
struct Joined {
  std::string part, whole;
};

/// Appends `part` to `whole`. Tokens and labels are the whole's; a part's input and output live on
/// as what their pass keeps: until backward, or inside the block. Without a prefix they stay what
/// they are. A joined name that the whole lacks is made. `link` it afterwards.
void nest(Block& whole, const Block& part, const std::string& prefix,
          const std::vector<Joined>& joined);

}  // namespace orrery::models
