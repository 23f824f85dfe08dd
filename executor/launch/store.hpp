#pragma once
// A small table that all ranks of a run share: rank 0 serves it over TCP, everyone (rank 0 too)
// is a client. Ranks find each other's addresses in it, agree on barriers, and tell why they end.
//
// Wire. Frames are a length (4 bytes, little-endian, at most `store_frame_limit`) and that many
// bytes. The first frame says who knocks: magic, protocol version, ranks, rank, job; the server
// answers yes, or no and why, so two jobs on one host cannot mistake each other.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/launch/socket.hpp"

namespace orrery::executor {

inline constexpr std::size_t store_frame_limit = std::size_t{64} << 20;

/// What the two ends must agree on.
struct StoreIdentity {
  std::string job{};
  int ranks = 1;
};

/// The table. Serves from its own thread until it is destroyed.
class StoreServer {
 public:
  /// Errors  the port is taken: RunFailure{local_failure}
  StoreServer(const Address& where, StoreIdentity identity);
  ~StoreServer();
  /// Where it listens: the port is the real one, the host as it was asked for.
  Address address() const;
  /// Waits until no more than `connections` are open: others have read why a run ends.
  void linger(int connections, std::chrono::milliseconds patience) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// A key and a value that the server writes, if the key is not there yet, when this client's
/// connection ends without `leave`: how a rank that is killed still tells its peers.
struct LastWill {
  std::string key{}, value{};
};

/// One connection of one rank. One thread at a time uses it.
/// Errors of all calls  RunFailure{peer_failed}: the server vanished, or a deadline has passed
class Store {
 public:
  /// Joins; waits until `patience` is over for a server that is late.
  Store(const Address& server, const StoreIdentity& identity, int rank,
        std::chrono::milliseconds patience, const LastWill& will = {});
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  void set(std::string_view key, std::string_view value);
  /// Sets unless it is there; what is there then.
  std::string first(std::string_view key, std::string_view value);
  std::optional<std::string> find(std::string_view key);
  /// Waits until somebody sets it: `nobody set 'x' within 5 s; missing: ranks 2 3` names the ranks
  /// that have not joined.
  std::string get(std::string_view key, std::chrono::milliseconds patience);
  /// To a number that is 0 at first; the sum.
  std::int64_t add(std::string_view key, std::int64_t amount);
  void erase(std::string_view key);
  /// Until every rank has called it with this name, which may be used again afterwards.
  /// `barrier 'x' was not reached within 5 s by ranks 2 3`
  void barrier(std::string_view name, std::chrono::milliseconds patience);
  /// What rank 0's clock shows less what ours does, by the quickest of 32 questions.
  /// Source  Cristian 1989, "Probabilistic clock synchronization"
  Clock::duration clock_offset();
  /// Goodbye: the will is void.
  void leave() noexcept;
  /// Ends a call that waits, and all later ones; safe from another thread.
  void interrupt() noexcept;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// This end of the connection: an address at which this rank can be reached.
  Address local() const { return local_address(socket_); }
  const Address& server() const { return server_; }

 private:
  std::string ask(std::uint8_t verb, std::string_view key, std::string_view value,
                  std::chrono::milliseconds patience, bool* found = nullptr);

  Socket socket_;
  Address server_;
  int rank_ = 0, ranks_ = 1;
};

/// "ranks 2 3", "rank 7"; a long list is cut: "ranks 0 1 2 3 4 5 6 7 and 56 more".
std::string text_of_ranks(const std::vector<int>& ranks);

/// The store's address in a file of a folder that all ranks see: written whole or not at all.
void publish_address(const std::string& path, const Address& address);
/// Waits for it. Errors: RunFailure{peer_failed} `no rank 0 within 5 s: PATH is not there`.
Address published_address(const std::string& path, std::chrono::milliseconds patience);

}  // namespace orrery::executor
