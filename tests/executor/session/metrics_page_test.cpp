#include "executor/session/metrics_page.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace orrery::executor {

namespace {

/// A port of the loopback that nothing listens on at the moment.
std::uint16_t unused_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof where;
  REQUIRE(::bind(probe, reinterpret_cast<sockaddr*>(&where), size) == 0);
  REQUIRE(::getsockname(probe, reinterpret_cast<sockaddr*>(&where), &size) == 0);
  ::close(probe);
  return ntohs(where.sin_port);
}

int caller_of(std::uint16_t port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  where.sin_port = htons(port);
  REQUIRE(::connect(socket, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0);
  return socket;
}

std::string page_at(std::uint16_t port) {
  const int socket = caller_of(port);
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n";
  REQUIRE(::send(socket, request.data(), request.size(), MSG_NOSIGNAL) > 0);
  std::string page;
  char piece[4096];
  for (ssize_t size = 1; size > 0;) {
    size = ::recv(socket, piece, sizeof piece, 0);
    if (size > 0) page.append(piece, static_cast<std::size_t>(size));
  }
  ::close(socket);
  return page;
}

}  // namespace

TEST_CASE("Connections that never ask do not keep the page from one that does") {
  const std::uint16_t port = unused_port();
  MetricsPage page{{.host = "127.0.0.1", .port = port}};
  page.set("orrery_ranks", MetricsPage::Kind::gauge, "Ranks of the run", 2);
  std::vector<int> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(caller_of(port));  // 64 are served at once
  for (int i = 0; i < 3; ++i) {
    CHECK(page_at(port).find("orrery_ranks 2") != std::string::npos);
  }
  for (const int each : silent) ::close(each);
}

}  // namespace orrery::executor
