#pragma once
// A page of metrics in Prometheus' text format, served from a thread of its own.
// Source  prometheus.io, "Exposition formats", version 0.0.4
//
// It uses Boost.Beast, not cpp-httplib, where a client that sends a byte a second keeps a thread
// for hours and the server's shutdown waits for it. Here every client has one second in all, and
// shutdown waits for none.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "executor/launch/environment.hpp"

namespace orrery::executor {

/// The metrics and their server.
class MetricsPage {
 public:
  /// `where` is the IP address of an interface ("127.0.0.1", "::", "0.0.0.0") and a port.
  /// Errors  InputError `--metrics-address: expected ...`, `--metrics-port: cannot listen on ...`
  explicit MetricsPage(const Address& where);
  ~MetricsPage();
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  enum class Kind : std::uint8_t { gauge, counter };
  /// name  with its labels, if it has any: `name{gpu="0"}`; help is of the name alone
  /// help  one line, for people
  void set(const std::string& name, Kind kind, const std::string& help, double value);
  /// The page as it is now.
  std::string page() const;

 private:
  struct Metric {
    Kind kind = Kind::gauge;
    std::string help{};
    double value = 0;
  };
  class Reader;
  class Server;

  mutable std::mutex lock_;
  std::map<std::string, Metric> metrics_;
  std::unique_ptr<Server> server_;  // destroyed first: it reads the page
};

}  // namespace orrery::executor
