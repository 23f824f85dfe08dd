#include "executor/launch/interruption.hpp"

#include <poll.h>

#include <utility>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

thread_local int interruption_of_thread = -1;

}  // namespace

Interruptible::Interruptible(int descriptor)
    : before_{std::exchange(interruption_of_thread, descriptor)} {}

Interruptible::~Interruptible() {
  interruption_of_thread = before_;
}

int interruption() {
  return interruption_of_thread;
}

void refuse_if_interrupted() {
  pollfd asked{interruption(), POLLIN, 0};
  if (asked.fd < 0 || ::poll(&asked, 1, 0) <= 0) return;
  throw RunFailure{Exit::interrupted, "interrupted while ranks connect"};
}

}  // namespace orrery::executor
