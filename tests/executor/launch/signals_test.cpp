#include "executor/launch/signals.hpp"

#include <poll.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <thread>

namespace orrery::executor {

namespace {

bool readable(int descriptor) {
  pollfd asked{descriptor, POLLIN, 0};
  return ::poll(&asked, 1, 0) == 1;
}

}  // namespace

TEST_CASE("Before the first step, and without checkpoints, a signal ends the run at once") {
  const SignalWishes wishes;
  CHECK(SignalWishes::end() == 0);
  CHECK_FALSE(readable(SignalWishes::descriptor()));
  std::raise(SIGTERM);
  CHECK(SignalWishes::end() == SIGTERM);
  CHECK(SignalWishes::at_once());
  CHECK(readable(SignalWishes::descriptor()));
}

TEST_CASE("With checkpoints the first signal waits for the step, the second one does not") {
  const SignalWishes wishes;
  SignalWishes::answer_after_the_step();
  std::raise(SIGINT);
  std::raise(SIGINT);  // by the terminal, and passed on by the parent
  CHECK(SignalWishes::end() == SIGINT);
  CHECK_FALSE(SignalWishes::at_once());
  CHECK_FALSE(readable(SignalWishes::descriptor()));
  std::this_thread::sleep_for(std::chrono::milliseconds{550});
  std::raise(SIGTERM);
  CHECK(SignalWishes::end() == SIGINT);
  CHECK(SignalWishes::at_once());
  CHECK(readable(SignalWishes::descriptor()));
}

TEST_CASE("SIGUSR1 asks for a checkpoint and for nothing else") {
  const SignalWishes wishes;
  std::raise(SIGUSR1);
  CHECK(SignalWishes::checkpoint());
  CHECK(SignalWishes::end() == 0);
  CHECK_FALSE(SignalWishes::at_once());
}

}  // namespace orrery::executor
