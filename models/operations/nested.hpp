#pragma once
// Inlines a block into another: its operands and operations are copied under a prefix, except
// operands that the two share. Used for modules that contain layers of their own inside the
// embedding's or head's block (ELECTRA's generator, multi-token prediction).

#include <string>
#include <string_view>
#include <vector>

#include "models/program/block.hpp"

namespace orrery::models {

/// An operand of the part, and the operand of the whole that it is identified with. If that is a
/// weight of an earlier copy of the part, or its gradient: the prefix of that copy.
struct Joined {
  std::string part, whole;
  std::string copy{};
};

/// Appends `part` to `whole`. Tokens and labels are shared with the whole. The part's input and
/// output become saved operands in forward and temporaries in backward; with an empty prefix they
/// keep their roles. A joined name that the whole lacks is added to it. Call `link` afterwards.
void nest(Block& whole, const Block& part, const std::string& prefix,
          const std::vector<Joined>& joined);

}  // namespace orrery::models
