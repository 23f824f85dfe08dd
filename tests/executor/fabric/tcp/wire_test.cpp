// What a peer sends is not trusted: sizes that no receive waits for end the connection, not the
// process.

#include "executor/fabric/tcp/wire.hpp"

#include <sys/socket.h>

#include <array>
#include <catch2/catch.hpp>

#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {
namespace {

using namespace std::chrono_literals;

/// Rank 0's end is a Wire, rank 1's a bare socket.
struct Pair {
  Pair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    peer = Socket{ends[1]};
    std::vector<Socket> peers(2);
    peers[1] = Socket{ends[0]};
    wire.emplace(0, std::move(peers));
  }
  void say(std::uint64_t stream, std::uint64_t size, const std::string& data) const {
    const std::array<std::uint64_t, 2> header{stream, size};
    REQUIRE(::send(peer.descriptor(), header.data(), sizeof header, 0) == sizeof header);
    REQUIRE(::send(peer.descriptor(), data.data(), data.size(), 0) ==
            static_cast<ssize_t>(data.size()));
  }

  Socket peer;
  std::optional<Wire> wire;
};

}  // namespace

TEST_CASE("A message of 2^40 bytes is refused before memory is asked for") {
  const std::uint64_t size = GENERATE(std::uint64_t{1} << 40, ~std::uint64_t{0});
  Pair pair;
  pair.say(7, size, "x");
  CHECK(failure([&] { pair.wire->progress(1s); }) == "rank 1 sent a message of " +
                                                         std::to_string(size) +
                                                         " bytes, for which there is no memory");
}

TEST_CASE("A message of another size than is waited for is refused, whichever comes first") {
  std::array<std::byte, 4> into{};
  const std::string refused = "rank 1 sent a message of 8 bytes where 4 are expected";
  Pair waits;
  waits.wire->receive(1, 7, into.data(), into.size(), [] {});
  waits.say(7, 8, "12345678");
  CHECK(failure([&] { waits.wire->progress(1s); }) == refused);
  Pair comes;
  comes.say(7, 8, "12345678");
  comes.wire->progress(1s);
  CHECK(failure([&] { comes.wire->receive(1, 7, into.data(), into.size(), [] {}); }) == refused);
}

}  // namespace orrery::executor
