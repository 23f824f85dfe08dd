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
  StopRequests requests;
  const SignalRequests signals{requests};
  CHECK(requests.end() == 0);
  CHECK_FALSE(readable(requests.descriptor()));
  std::raise(SIGTERM);
  CHECK(requests.end() == SIGTERM);
  CHECK(requests.at_once());
  CHECK(readable(requests.descriptor()));
}

TEST_CASE("With checkpoints the first signal waits for the step, the second one does not") {
  StopRequests requests;
  const SignalRequests signals{requests};
  requests.answer_after_the_step();
  std::raise(SIGINT);
  std::raise(SIGINT);  // by the terminal, and passed on by the parent
  CHECK(requests.end() == SIGINT);
  CHECK_FALSE(requests.at_once());
  CHECK_FALSE(readable(requests.descriptor()));
  std::this_thread::sleep_for(std::chrono::milliseconds{550});
  std::raise(SIGTERM);
  CHECK(requests.end() == SIGINT);
  CHECK(requests.at_once());
  CHECK(readable(requests.descriptor()));
}

TEST_CASE("SIGUSR1 asks for a checkpoint and for nothing else") {
  StopRequests requests;
  const SignalRequests signals{requests};
  std::raise(SIGUSR1);
  CHECK(requests.checkpoint());
  CHECK(requests.end() == 0);
  CHECK_FALSE(requests.at_once());
}

}  // namespace orrery::executor
