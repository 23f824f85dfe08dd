// Makes the connections between every two ranks.

#include <fmt/format.h>
#include <unistd.h>

#include "executor/errors.hpp"
#include "executor/fabric/tcp/wire.hpp"
#include "executor/launch/acceptor.hpp"
#include "executor/launch/interruption.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::milliseconds between_looks{50};  // for the deadline and an interruption

std::string key_of(int rank) {
  return fmt::format("tcp/{}", rank);
}

/// Where this rank listens: on one host, at a socket next to the store's; else on the interface
/// over which this rank reaches the store, unless rank 0 was asked to listen on all.
Address own_address(const Store& store) {
  const Address& server = store.server();
  if (!server.path.empty()) return {.path = fmt::format("{}.{}", server.path, store.rank())};
  const bool all = server.host == "0.0.0.0" || server.host == "::";
  return {.host = store.rank() == 0 && all ? server.host : store.local().host, .port = 0};
}

/// A rank on rank 0's host may know itself by an address that only this host can use; others reach
/// it by the name under which they reach the store.
Address reachable(const std::string& published, int rank, const Store& store) {
  if (published.substr(0, 1) == "/") return {.path = published};
  try {
    Address address = parse_address(published, key_of(rank));
    if (is_loopback(address.host)) address.host = store.server().host;
    return address;
  } catch (const InputError& error) {
    throw RunFailure{Exit::peer_failed, error.what()};
  }
}

/// Accepts connections from higher ranks until none is missing.
class PeerSockets {
 public:
  PeerSockets(Store& store, std::vector<Socket>& peers) : rank_{store.rank()}, peers_{peers} {
    const Address own = own_address(store);
    path_ = own.path;
    Socket listener = listen_on(own);
    const Address known =
        own.path.empty() ? Address{store.local().host, local_address(listener).port} : own;
    acceptor_.emplace(
        context_, std::move(listener), Service::wire, store.identity(),
        [this](const Claims& claims, StreamSocket& socket, const std::string& welcome) {
          return enter(claims, socket, welcome);
        });
    store.set(key_of(rank_), text_of(known));
  }
  ~PeerSockets() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  PeerSockets(const PeerSockets&) = delete;
  PeerSockets& operator=(const PeerSockets&) = delete;

  std::vector<int> missing() const {
    std::vector<int> absent;
    for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
      if (static_cast<int>(rank) > rank_ && !peers_[rank]) absent.push_back(static_cast<int>(rank));
    }
    return absent;
  }
  void let_in() { context_.run_one_for(between_looks); }

 private:
  bool enter(const Claims& claims, StreamSocket& socket, const std::string& welcome) {
    Socket& peer = peers_[static_cast<std::size_t>(claims.rank)];
    if (claims.rank <= rank_ || peer) return false;
    Socket taken{socket.release()};
    try {  // a new connection has room for it
      send_all(taken, welcome.data(), welcome.size(), Clock::now(), "");
      peer = std::move(taken);
    } catch (const RunFailure&) {  // gone again; it may come back
    }
    return true;
  }

  int rank_;
  std::vector<Socket>& peers_;
  std::string path_;
  boost::asio::io_context context_;
  std::optional<Acceptor> acceptor_;
};

Socket call(Store& store, int rank, std::chrono::milliseconds patience, Deadline deadline) {
  const std::string published = store.get(key_of(rank), patience);
  return authenticated_socket(reachable(published, rank, store), Service::wire, store.identity(),
                              {.rank = store.rank()}, deadline, fmt::format("rank {}", rank));
}

}  // namespace

std::vector<Socket> connected_ranks(Store& store, std::chrono::milliseconds patience) {
  std::vector<Socket> peers(static_cast<std::size_t>(store.ranks()));
  if (peers.size() == 1) return peers;
  const Deadline deadline = Clock::now() + patience;
  PeerSockets mesh{store, peers};
  for (int lower = 0; lower < store.rank(); ++lower) {
    peers[static_cast<std::size_t>(lower)] = call(store, lower, patience, deadline);
  }
  for (std::vector<int> missing = mesh.missing(); !missing.empty(); missing = mesh.missing()) {
    refuse_if_interrupted();
    if (Clock::now() >= deadline) {
      throw RunFailure{Exit::peer_failed,
                       fmt::format("{} did not connect within {} s", text_of_ranks(missing),
                                   std::chrono::ceil<std::chrono::seconds>(patience).count())};
    }
    mesh.let_in();
  }
  return peers;
}

}  // namespace orrery::executor
