// Messages from a peer: each is kept until it is waited for, handed over whole, or ends the
// connection in order. Each takes three bytes of the input: its stream, its size and how much of it
// is sent.
#include <sys/socket.h>

#include <array>
#include <vector>

#include "executor/errors.hpp"
#include "executor/fabric/tcp/wire.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::executor {
namespace {

constexpr std::size_t most = 32 << 10;  // bytes that a socket surely takes at once

std::string messages(const std::uint8_t* data, std::size_t size) {
  std::string sent;
  for (; size >= 3 && sent.size() < most; data += 3, size -= 3) {
    // Large ones are beyond what any machine has: this one is not to be filled.
    const std::uint64_t length = data[1] < 250 ? data[1] : std::uint64_t{1} << (39 + data[1] % 24);
    const std::array<std::uint64_t, 2> header{data[0] % 4U, length};
    sent.append(reinterpret_cast<const char*>(header.data()), sizeof header);
    sent.append(data[2] == 0 ? length % 250 : data[2], 'x');
  }
  return sent;
}

void read(const std::string& sent) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  std::vector<Socket> peers(2);
  peers[1] = Socket{ends[0]};
  Socket peer{ends[1]};
  Wire wire{0, std::move(peers)};
  std::array<std::byte, 64> into{};
  int done = 0;
  try {
    wire.receive(1, 1, into.data(), into.size(), [&done] { ++done; });
    wire.take(1, 2, 100, [&](WireBlock block) { wire.give_back(std::move(block)); });
    if (::send(peer.descriptor(), sent.data(), sent.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
      return;
    peer.close();
    for (int i = 0; i < 8; ++i) wire.progress({});
    wire.receive(1, 3, into.data(), into.size(), [&done] { ++done; });
  } catch (const RunFailure& failure) {
    if (failure.code() != Exit::peer_failed) std::abort();
  }
  if (done > 2) std::abort();
}

}  // namespace
}  // namespace orrery::executor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  orrery::executor::read(orrery::executor::messages(data, size));
  return 0;
}
