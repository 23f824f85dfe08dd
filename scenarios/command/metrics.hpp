#pragma once
// A page of metrics in Prometheus' text format, served from a thread of its own.
// Source  prometheus.io, "Exposition formats", version 0.0.4

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "executor/launch/socket.hpp"

namespace orrery::scenarios {

class Metrics {
 public:
  /// Listens on every interface. Errors: RunFailure{local_failure}: the port is taken
  explicit Metrics(std::uint16_t port);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  enum class Kind : std::uint8_t { gauge, counter };
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
  void serve();

  executor::Socket listener_;
  mutable std::mutex lock_;
  std::map<std::string, Metric> metrics_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace orrery::scenarios
