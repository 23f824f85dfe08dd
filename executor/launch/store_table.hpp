#pragma once
// The contents of the store and its answers, without sockets: frames in, frames out. Clients have
// proved that they belong to the run; what they send is still not trusted.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "executor/launch/frame.hpp"
#include "executor/launch/handshake.hpp"

namespace orrery::executor {

inline constexpr std::size_t store_frame_limit = std::size_t{64} << 20;  // bytes, so of a value
inline constexpr std::size_t store_key_limit = 256;                      // bytes

/// Who asks: a rank, or its watchdog.
struct ClientId {
  int rank = 0;
  PeerRole role = PeerRole::rank;
  friend auto operator<=>(const ClientId&, const ClientId&) = default;
};

/// Keys, barriers and clients of the store.
class StoreTable {
 public:
  /// Is called with each answer, one to each request.
  using Answer = std::function<void(ClientId id, std::string frame)>;
  StoreTable(int ranks, Answer answer);

  /// False: that id is connected already, or the key of its will is too long.
  bool join(ClientId id, const LastWill& will);
  /// The connection has ended: its last will is written.
  void lose(ClientId id);

  /// `waits`: the answer comes later, by another client's request or by `give_up`. `refused`: this
  /// is no valid request; its sender is to be disconnected.
  enum class Served : std::uint8_t { answered, waits, refused };
  Served serve(ClientId id, std::string_view frame);
  /// How long a client that waits will do so; nullopt: it does not wait.
  std::optional<std::chrono::milliseconds> patience(ClientId id) const;
  void give_up(ClientId id);

 private:
  struct Client {
    LastWill will;
    std::optional<StoreVerb> waits;  // get or barrier
    std::string key;
    std::chrono::milliseconds patience{};
  };

  Served look_up(ClientId id, Client& client, StoreVerb verb);
  Served write(ClientId id, const Client& client, StoreVerb verb, const std::string& value);
  Served arrive(ClientId id, Client& client);
  bool set(const std::string& key, const std::string& value);
  std::vector<int> without(const std::set<int>& there) const;
  std::string why_given_up(const Client& client);
  Served answer(ClientId id, StoreAnswer status, std::string_view text);

  int ranks_;
  Answer answer_;
  std::map<ClientId, Client> clients_;
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<int>> barriers_;
  std::set<int> joined_;
};

}  // namespace orrery::executor
