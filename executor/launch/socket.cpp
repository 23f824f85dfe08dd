#include "executor/launch/socket.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "executor/errors.hpp"
#include "executor/launch/interruption.hpp"

namespace orrery::executor {

namespace {

constexpr int backlog = 1024;  // ranks that connect at once
constexpr std::chrono::milliseconds between_attempts{50};
constexpr std::chrono::seconds poll_slice{1};  // the longest poll within a wait

/// Where a socket listens or connects.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t size = 0;

  Endpoint(const void* address, std::size_t bytes) : size{static_cast<socklen_t>(bytes)} {
    std::memcpy(&storage, address, bytes);
  }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// Errors  a path that has no room in an address: RunFailure{local_failure}
Endpoint unix_endpoint(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw RunFailure{Exit::local_failure,
                     fmt::format("{}: the path of a socket has at most {} characters", path,
                                 sizeof address.sun_path - 1)};
  }
  path.copy(address.sun_path, path.size());
  return {&address, sizeof address};
}

/// The endpoint of a Unix socket, or all of a name; on failure none, and `why` is set.
std::vector<Endpoint> endpoints_of(const Address& address, int flags, std::string& why) {
  if (!address.path.empty()) return {unix_endpoint(address.path)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const char* host = address.host.empty() ? nullptr : address.host.c_str();
  const int error = getaddrinfo(host, std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) {
    why = gai_strerror(error);
    return {};
  }
  std::vector<Endpoint> all;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    all.emplace_back(each->ai_addr, each->ai_addrlen);
  }
  freeaddrinfo(found);
  return all;
}

Socket socket_for(const Endpoint& end) {
  return Socket{::socket(end.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
}

/// False: the deadline has passed. Time in which this process was paused, or starved of its core,
/// does not count.
/// Errors  RunFailure{interrupted}
bool wait_until_ready(const Socket& socket, short events, Deadline deadline) {
  for (;;) {
    pollfd waited[] = {{socket.descriptor(), events, 0}, {interruption(), POLLIN, 0}};
    const Deadline look = std::min(deadline, Clock::now() + poll_slice);
    const int ready = ::poll(waited, 2, poll_timeout(look));
    refuse_if_interrupted();
    if (ready > 0) return true;
    const auto late = Clock::now() - look;
    if (late > poll_slice) deadline = std::max(deadline + late, Clock::now() + poll_slice);
    if (ready == 0 && Clock::now() >= deadline) return false;
  }
}

/// Sleeps, unless an interruption comes.
void pause_for(std::chrono::milliseconds time) {
  wait_until_ready(Socket{}, 0, Clock::now() + time);
}

/// 0, or the error of one attempt.
int try_connect(const Socket& socket, const Endpoint& to, Deadline deadline) {
  if (!socket) return errno;
  make_nonblocking(socket);
  if (::connect(socket.descriptor(), to.address(), to.size) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  // One address that drops packets must not use up the time of the next.
  const auto patience = std::min(deadline, Clock::now() + std::chrono::seconds{3});
  if (!wait_until_ready(socket, POLLOUT, patience)) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(socket.descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

/// Why none of the address's endpoints answers; empty: `socket` is connected.
std::string why_unconnected(const Address& address, Deadline deadline, Socket& socket) {
  std::string why = "no address";
  for (const Endpoint& each : endpoints_of(address, 0, why)) {
    socket = socket_for(each);
    const int error = try_connect(socket, each, deadline);
    if (error == 0) return {};
    why = std::strerror(error);
  }
  return why;
}

/// 0, or an error. A Unix socket that a killed run has left at `path` is replaced.
int bind_to(const Socket& socket, const Endpoint& at, const std::string& path) {
  const auto bound = [&] {
    return ::bind(socket.descriptor(), at.address(), at.size) == 0 ? 0 : errno;
  };
  const int error = bound();
  if (error != EADDRINUSE || path.empty()) return error;
  if (try_connect(socket_for(at), at, Clock::now() + between_attempts) != ECONNREFUSED)
    return error;
  ::unlink(path.c_str());
  return bound();
}

/// A socket that listens at an endpoint, or an error.
Socket listener_at(const Endpoint& end, const std::string& path, int& error) {
  Socket listener = socket_for(end);
  error = listener ? 0 : errno;
  if (error != 0) return listener;
  const int yes = 1, no = 0;
  if (path.empty()) ::setsockopt(listener.descriptor(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (end.storage.ss_family == AF_INET6) {
    ::setsockopt(listener.descriptor(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  error = bind_to(listener, end, path);
  if (error == 0 && ::listen(listener.descriptor(), backlog) != 0) error = errno;
  return listener;
}

[[noreturn]] void lost(std::string_view peer, std::string_view how) {
  throw RunFailure{Exit::peer_failed, fmt::format("{} {}", peer, how)};
}

}  // namespace

int poll_timeout(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, 60'000));
}

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() noexcept {
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

Socket listen_on(const Address& address) {
  // Every interface is one IPv6 socket that takes IPv4 too, where the machine has IPv6.
  std::string why;
  Address wanted = address;
  const bool everywhere = address.host.empty() && address.path.empty();
  for (const char* host : {"::", "0.0.0.0"}) {
    if (everywhere) wanted.host = host;
    for (const Endpoint& each : endpoints_of(wanted, AI_PASSIVE, why)) {
      int error = 0;
      Socket listener = listener_at(each, address.path, error);
      if (error == 0) return listener;
      why = std::strerror(error);
    }
    if (!everywhere) break;
  }
  throw RunFailure{Exit::local_failure,
                   fmt::format("cannot listen on {}: {}", text_of(wanted), why)};
}

Socket connect_to(const Address& address, Deadline deadline) {
  std::string why;
  do {
    refuse_if_interrupted();
    Socket socket;
    why = why_unconnected(address, deadline, socket);
    if (why.empty()) return socket;
    pause_for(between_attempts);
  } while (Clock::now() < deadline);
  throw RunFailure{Exit::peer_failed, fmt::format("no answer at {} ({})", text_of(address), why)};
}

Address local_address(const Socket& socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&bound), &size);
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "0";
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), size, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  std::string_view number{host};
  constexpr std::string_view mapped = "::ffff:";  // IPv4 through an IPv6 socket
  if (number.substr(0, mapped.size()) == mapped) number.remove_prefix(mapped.size());
  return {.host = std::string{number}, .port = static_cast<std::uint16_t>(std::stoi(port))};
}

bool is_loopback(std::string_view host) {
  return host.substr(0, 4) == "127." || host == "::1" || host == "localhost";
}

int family_of(const Socket& socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.descriptor(), reinterpret_cast<sockaddr*>(&bound), &size);
  return bound.ss_family;
}

void send_immediately(int descriptor) {
  const int yes = 1;  // a Unix socket does so by itself
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

void make_nonblocking(const Socket& socket) {
  const int flags = ::fcntl(socket.descriptor(), F_GETFL);
  ::fcntl(socket.descriptor(), F_SETFL, flags | O_NONBLOCK);
}

void send_all(const Socket& socket, const void* data, std::size_t size, Deadline deadline,
              std::string_view peer) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket.descriptor(), at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      at += sent;
      size -= static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_until_ready(socket, POLLOUT, deadline))
        lost(peer, "does not read what is sent to it");
    } else if (errno != EINTR) {
      lost(peer, fmt::format("vanished ({})", std::strerror(errno)));
    }
  }
}

void receive_all(const Socket& socket, void* data, std::size_t size, Deadline deadline,
                 std::string_view peer) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::recv(socket.descriptor(), at, size, MSG_DONTWAIT);
    if (got > 0) {
      at += got;
      size -= static_cast<std::size_t>(got);
    } else if (got == 0) {
      lost(peer, "closed its connection");
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      if (!wait_until_ready(socket, POLLIN, deadline)) lost(peer, "does not answer");
    } else if (errno != EINTR) {
      lost(peer, fmt::format("vanished ({})", std::strerror(errno)));
    }
  }
}

}  // namespace orrery::executor
