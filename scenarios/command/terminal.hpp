#pragma once
// What stdout is: how wide, and whether it shows colours.

namespace orrery::scenarios {

struct Terminal {
  int width = 100;
  bool colour = false;
};

/// Of stdout. Not a terminal: 100 columns (or COLUMNS), no colour. NO_COLOR is obeyed.
Terminal terminal();

}  // namespace orrery::scenarios
