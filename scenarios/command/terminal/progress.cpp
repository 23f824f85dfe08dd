#include "scenarios/command/terminal/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

#include "scenarios/command/commands.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

namespace {

volatile std::sig_atomic_t seen = 0;

extern "C" void remember(int signal) {
  seen = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  seen = 0;
  std::signal(SIGINT, remember);
  std::signal(SIGTERM, remember);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

bool InterruptGuard::interrupted() {
  return seen != 0;
}

int InterruptGuard::exit_code() {
  return seen == 0 ? exit_done : 128 + seen;
}

Progress watched_progress(std::string noun) {
  const bool watched = isatty(STDERR_FILENO) == 1;
  return
      [noun = std::move(noun), watched, shown = false](std::size_t done, std::size_t all) mutable {
        const bool over = done == all || InterruptGuard::interrupted();
        if (watched && (!over || shown)) {
          constexpr std::size_t width = 30;
          const double share = all > 0 ? static_cast<double>(done) / static_cast<double>(all) : 1;
          const std::string line =
              fmt::format("{} of {} {}  {}", done, all, noun, bar(0, share, width));
          fmt::print(stderr, "\r\x1b[K{}", over ? "" : line);
          std::fflush(stderr);
          shown = !over;
        }
        return !InterruptGuard::interrupted();
      };
}

}  // namespace orrery::scenarios
