// The mesh of connections: a rank calls all lower ranks and is called by all higher ones.

#include <fmt/format.h>

#include "executor/errors.hpp"
#include "executor/launch/frame.hpp"
#include "executor/tcp/wire.hpp"

namespace orrery::executor {

namespace {

constexpr std::string_view wire_magic = "ORRERYTW";
constexpr std::size_t longest_job = 4096;
constexpr std::chrono::seconds for_a_greeting{5};

std::string key_of(int rank) {
  return fmt::format("tcp/{}", rank);
}

/// A rank beside the store publishes what only its own machine can use; others reach it by the
/// name under which they reach the store.
Address reachable(Address published, const Store& store) {
  if (is_loopback(published.host)) published.host = store.server().host;
  return published;
}

/// Who calls; nothing if it is no rank of this job above ours.
std::optional<int> greeting(const Socket& socket, std::string_view job, int above, int ranks) {
  const Deadline deadline = Clock::now() + for_a_greeting;
  try {
    std::string head(wire_magic.size() + 8, '\0');
    receive_all(socket, head.data(), head.size(), deadline, "a caller");
    if (std::string_view{head}.substr(0, wire_magic.size()) != wire_magic) return std::nullopt;
    FrameReader numbers{std::string_view{head}.substr(wire_magic.size())};
    const std::uint64_t rank = numbers.number(4), size = numbers.number(4);
    if (size > longest_job || rank >= static_cast<std::uint64_t>(ranks)) return std::nullopt;
    std::string theirs(size, '\0');
    receive_all(socket, theirs.data(), size, deadline, "a caller");
    if (theirs != job || static_cast<int>(rank) <= above) return std::nullopt;
    return static_cast<int>(rank);
  } catch (const RunFailure&) {  // a stranger that hangs up
    return std::nullopt;
  }
}

}  // namespace

void Wire::connect(Store& store, std::string_view job, std::chrono::milliseconds patience) {
  if (ranks() == 1) return;
  const Deadline deadline = Clock::now() + patience;
  const std::string host = store.local().host;
  // Only where all ranks share a machine is its loopback enough.
  const bool alone = is_loopback(store.server().host);
  const Socket listener = listen_on({.host = alone ? host : "", .port = 0});
  store.set(key_of(rank_), text_of({host, local_address(listener).port}));

  for (int lower = 0; lower < rank_; ++lower) {
    const std::string published = store.get(key_of(lower), patience);
    Socket socket = connect_to(reachable(parse_address(published, key_of(lower)), store), deadline);
    FrameWriter numbers;
    numbers.number(static_cast<std::uint64_t>(rank_), 4).text(job);
    const std::string hello = std::string{wire_magic} + numbers.framed().substr(4);
    send_all(socket, hello.data(), hello.size(), deadline, fmt::format("rank {}", lower));
    peers_[static_cast<std::size_t>(lower)].socket = std::move(socket);
  }
  for (int missing = ranks() - 1 - rank_; missing > 0;) {
    Socket socket = accept_from(listener, deadline);
    if (!socket) {
      std::vector<int> absent;
      for (const Peer& each : peers_) {
        if (each.rank > rank_ && !each.socket) absent.push_back(each.rank);
      }
      throw RunFailure{Exit::peer_failed,
                       fmt::format("{} did not connect within {} s", text_of_ranks(absent),
                                   std::chrono::ceil<std::chrono::seconds>(patience).count())};
    }
    const auto caller = greeting(socket, job, rank_, ranks());
    if (!caller || peers_[static_cast<std::size_t>(*caller)].socket) continue;
    peers_[static_cast<std::size_t>(*caller)].socket = std::move(socket);
    --missing;
  }
}

}  // namespace orrery::executor
