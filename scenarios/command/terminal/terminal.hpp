#pragma once
// Width of stdout, and whether it shows colours.

namespace orrery::scenarios {

struct Terminal {
  int width = 100;
  bool colour = false;
};

/// Properties of stdout. If it is not a terminal: 100 columns (or COLUMNS), no colour. NO_COLOR is
/// obeyed.
Terminal terminal();

}  // namespace orrery::scenarios
