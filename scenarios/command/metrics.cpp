#include "scenarios/command/metrics.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include "executor/errors.hpp"

namespace orrery::scenarios {

using executor::Clock;
using executor::Socket;

namespace {

constexpr std::chrono::milliseconds look_again{200};
constexpr std::chrono::seconds for_one_reader{2};

}  // namespace

Metrics::Metrics(std::uint16_t port) : listener_{executor::listen_on({.host = "", .port = port})} {
  thread_ = std::thread{[this] { serve(); }};
}

Metrics::~Metrics() {
  {
    const std::lock_guard guard{lock_};
    stop_ = true;
  }
  thread_.join();
}

void Metrics::set(const std::string& name, Kind kind, const std::string& help, double value) {
  const std::lock_guard guard{lock_};
  metrics_[name] = {kind, help, value};
}

std::string Metrics::page() const {
  const std::lock_guard guard{lock_};
  std::string text;
  for (const auto& [name, metric] : metrics_) {
    const char* kind = metric.kind == Kind::gauge ? "gauge" : "counter";
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, metric.help, kind,
                        metric.value);
  }
  return text;
}

/// Whatever is asked for, the page is the answer.
void Metrics::serve() {
  for (;;) {
    {
      const std::lock_guard guard{lock_};
      if (stop_) return;
    }
    const Socket reader = executor::accept_from(listener_, Clock::now() + look_again);
    if (!reader) continue;
    ::pollfd asked{reader.descriptor(), POLLIN, 0};
    ::poll(&asked, 1, 1000);
    char request[4096];
    [[maybe_unused]] const auto size = ::recv(reader.descriptor(), request, sizeof request, 0);
    const std::string body = page();
    const std::string answer = fmt::format(
        "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: "
        "{}\r\n\r\n{}",
        body.size(), body);
    try {
      send_all(reader, answer.data(), answer.size(), Clock::now() + for_one_reader, "a reader");
    } catch (const executor::RunFailure&) {  // it went away
    }
  }
}

}  // namespace orrery::scenarios
