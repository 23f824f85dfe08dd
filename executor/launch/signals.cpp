#include "executor/launch/signals.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <initializer_list>

namespace orrery::executor {

namespace {

/// What the handler writes and the run reads.
struct Wishes {
  volatile std::sig_atomic_t end = 0, checkpoint = 0, at_once = 0, patient = 0;
  std::int64_t first = 0;  // when `end` came, in nanoseconds; only the handler's
  int descriptor = -1;
};
Wishes wishes;

std::int64_t nanoseconds_now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

extern "C" void take_wish(int signal) {
  const int error = errno;
  const bool again = wishes.end != 0;
  const std::int64_t time = nanoseconds_now();
  if (signal == SIGUSR1) {
    wishes.checkpoint = 1;
  } else if (!again || time - wishes.first > std::chrono::nanoseconds{same_wish}.count()) {
    if (!again) wishes.first = time;
    if (!again) wishes.end = signal;
    if (again || wishes.patient == 0) {
      wishes.at_once = 1;
      const std::uint64_t one = 1;
      [[maybe_unused]] const auto written = ::write(wishes.descriptor, &one, sizeof one);
    }
  }
  errno = error;
}

/// One at a time, so that two wishes never interrupt each other.
void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int each : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&action.sa_mask, each);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

SignalWishes::SignalWishes() {
  wishes = {};
  wishes.descriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int each : {SIGINT, SIGTERM, SIGUSR1}) on_signal(each, take_wish);
  for (const int each : {SIGPIPE, SIGXFSZ}) on_signal(each, SIG_IGN);
}

SignalWishes::~SignalWishes() {
  for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGXFSZ}) on_signal(each, SIG_DFL);
  ::close(wishes.descriptor);
  wishes.descriptor = -1;
}

void SignalWishes::answer_after_the_step() {
  wishes.patient = 1;
}

int SignalWishes::end() {
  return wishes.end;
}

bool SignalWishes::at_once() {
  return wishes.at_once != 0;
}

bool SignalWishes::checkpoint() {
  return wishes.checkpoint != 0;
}

int SignalWishes::descriptor() {
  return wishes.descriptor;
}

}  // namespace orrery::executor
