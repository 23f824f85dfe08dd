#pragma once
// Stream sockets (IPv4, IPv6 and Unix) that are closed on exec and raise no SIGPIPE. They transfer
// whole messages or fail with a reason, within a deadline and until an interruption
// (interruption.hpp). SO_REUSEPORT is never set: with it a second job would listen on the same port
// and take half of the first one's ranks.

#include <chrono>
#include <cstddef>
#include <string_view>
#include <utility>

#include "executor/launch/environment.hpp"

namespace orrery::executor {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

/// Milliseconds left, at least 0 and at most one minute: what poll(2) takes.
int poll_timeout(Deadline deadline);

/// A file descriptor with one owner.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_{descriptor} {}
  Socket(Socket&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  int descriptor() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }
  void close() noexcept;
  /// Hands the descriptor to another owner.
  int release() { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

/// Listens there exclusively; an empty host is every interface, port 0 any free one. A Unix socket
/// without a server is replaced.
/// Errors  RunFailure{local_failure}: `cannot listen on HOST:PORT: REASON`
Socket listen_on(const Address& address);
/// Tries every address of the name until the deadline, because the listener may be late.
/// Errors  RunFailure{peer_failed}: `no answer at HOST:PORT (REASON)`
Socket connect_to(const Address& address, Deadline deadline);

Address local_address(const Socket& socket);
bool is_loopback(std::string_view host);
/// AF_INET, AF_INET6 or AF_UNIX.
int family_of(const Socket& socket);

/// Sends small messages at once (TCP_NODELAY).
void send_immediately(int descriptor);
void make_nonblocking(const Socket& socket);

/// Send or receive all `size` bytes, or throw RunFailure{peer_failed} saying that `peer` closed,
/// failed or was too slow.
void send_all(const Socket& socket, const void* data, std::size_t size, Deadline deadline,
              std::string_view peer);
void receive_all(const Socket& socket, void* data, std::size_t size, Deadline deadline,
                 std::string_view peer);

}  // namespace orrery::executor
