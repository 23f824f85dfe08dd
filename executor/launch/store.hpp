#pragma once
// A small key-value store that all ranks of a run share: rank 0 serves it, every rank (rank 0 too)
// is a client. Ranks find each other's addresses in it, agree on barriers, and report why they end.
//
// Ranks of one host connect at a Unix socket, those of several over TCP. A connection begins with a
// handshake (handshake.hpp); then frames go either way in turn, a request and its answer: a length
// (4 bytes, little-endian, at most `store_frame_limit`) and that many bytes (store_table.hpp).

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/launch/frame.hpp"
#include "executor/launch/handshake.hpp"

namespace orrery::executor {

/// The server of the store. It serves from its own thread until it is destroyed.
class StoreServer {
 public:
  /// Errors  the address is taken or is not ours: RunFailure{local_failure}
  StoreServer(const Address& where, const StoreIdentity& identity);
  ~StoreServer();
  /// Where it listens: the actual port, and the host as it was requested.
  Address address() const;
  /// Waits until no more than `connections` are open, so that others can read why a run ends.
  void linger(int connections, std::chrono::milliseconds patience) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// One connection of one rank. One thread at a time uses it.
/// Errors of all calls  RunFailure{peer_failed}: the server vanished, an answer of it cannot be
///                      read, or a deadline has passed
class Store {
 public:
  /// Connects; waits for a server that is late until `patience` is over.
  /// Errors  as `authenticated_socket`
  Store(const Address& server, const StoreIdentity& identity, const Claims& claims,
        std::chrono::milliseconds patience);
  Store(const Address& server, const StoreIdentity& identity, int rank,
        std::chrono::milliseconds patience)
      : Store{server, identity, Claims{.rank = rank}, patience} {}
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  void set(std::string_view key, std::string_view value) { ask(StoreVerb::set, key, value, {}); }
  /// Sets the key unless it exists; returns the value that it then has.
  std::string first(std::string_view key, std::string_view value) {
    return ask(StoreVerb::first, key, value, {});
  }
  std::optional<std::string> find(std::string_view key);
  /// Waits until a rank sets it: `no rank set 'x' within 5 s; missing: ranks 2 3` names the ranks
  /// that have not joined.
  std::string get(std::string_view key, std::chrono::milliseconds patience) {
    return ask(StoreVerb::get, key, {}, patience);
  }
  std::int64_t get_number(std::string_view key, std::chrono::milliseconds patience) {
    return number_of(get(key, patience));
  }
  /// Adds to a number that is 0 at first; returns the sum.
  std::int64_t add(std::string_view key, std::int64_t amount) {
    return number_of(ask(StoreVerb::add, key, std::to_string(amount), {}));
  }
  void erase(std::string_view key) { ask(StoreVerb::erase, key, {}, {}); }
  /// Waits until every rank has called it with this name, which may be used again afterwards.
  /// Errors  `barrier 'x' was not reached within 5 s by ranks 2 3`
  void barrier(std::string_view name, std::chrono::milliseconds patience) {
    ask(StoreVerb::barrier, name, {}, patience);
  }
  /// Rank 0's clock minus this rank's, by the quickest of 32 requests.
  /// Source  Cristian 1989, "Probabilistic clock synchronization"
  Clock::duration clock_offset();
  /// Leaves in order, so that the last will is not written.
  void leave() noexcept;
  /// Ends a call that waits, and all later ones; safe from another thread.
  void interrupt() noexcept;

  int rank() const { return rank_; }
  int ranks() const { return identity_.ranks; }
  const StoreIdentity& identity() const { return identity_; }
  /// This end of the connection: an address at which this rank can be reached.
  Address local() const { return local_address(socket_); }
  const Address& server() const { return server_; }

 private:
  std::string ask(StoreVerb verb, std::string_view key, std::string_view value,
                  std::chrono::milliseconds patience, bool* found = nullptr);
  std::int64_t number_of(const std::string& answer) const;

  Socket socket_;
  Address server_;
  StoreIdentity identity_;
  int rank_ = 0;
};

/// "ranks 2 3", "rank 7"; a long list is cut: "ranks 0 1 2 3 4 5 6 7 and 56 more".
std::string text_of_ranks(const std::vector<int>& ranks);

}  // namespace orrery::executor
