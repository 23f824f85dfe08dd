#include "executor/launch/signals.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <ctime>

namespace orrery::executor {

namespace {

static_assert(std::atomic<StopRequests*>::is_always_lock_free);  // a handler reads it
std::atomic<StopRequests*> of_signals{nullptr};

std::int64_t nanoseconds_now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

extern "C" void pass_to_requests(int signal) {
  const int error = errno;
  if (StopRequests* requests = of_signals) {
    if (signal == SIGUSR1) {
      requests->ask_for_checkpoint();
    } else {
      requests->ask_to_end(signal);
    }
  }
  errno = error;
}

/// Installs a handler that blocks the other requests, so that two never interrupt each other.
void on_signal(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int each : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&action.sa_mask, each);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

StopRequests::StopRequests() : descriptor_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {}

StopRequests::~StopRequests() {
  ::close(descriptor_);
}

void StopRequests::ask_to_end(int signal) noexcept {
  const std::int64_t time = nanoseconds_now();
  const bool again = end_ != 0;
  if (again && time - first_ <= std::chrono::nanoseconds{same_request}.count()) return;
  if (!again) first_ = time;
  if (!again) end_ = signal;
  if (!again && patient_) return;
  at_once_ = true;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(descriptor_, &one, sizeof one);
}

SignalRequests::SignalRequests(StopRequests& requests) {
  of_signals = &requests;
  for (const int each : {SIGINT, SIGTERM, SIGUSR1}) on_signal(each, pass_to_requests);
  for (const int each : {SIGPIPE, SIGXFSZ}) on_signal(each, SIG_IGN);
}

SignalRequests::~SignalRequests() {
  for (const int each : {SIGINT, SIGTERM, SIGUSR1, SIGPIPE, SIGXFSZ}) on_signal(each, SIG_DFL);
  of_signals = nullptr;
}

}  // namespace orrery::executor
