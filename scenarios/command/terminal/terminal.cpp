#include "scenarios/command/terminal/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace orrery::scenarios {

Terminal terminal() {
  Terminal found;
  if (const char* columns = std::getenv("COLUMNS")) {
    if (const int given = std::atoi(columns); given > 0) found.width = given;
  }
  const bool shown = isatty(STDOUT_FILENO) == 1;
  winsize size{};
  if (shown && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    found.width = size.ws_col;
  }
  found.width = std::clamp(found.width, 60, 140);  // below, lines break; above, bars get too long
  const char* refused = std::getenv("NO_COLOR");
  found.colour = shown && (refused == nullptr || *refused == '\0');
  return found;
}

}  // namespace orrery::scenarios
