#pragma once
// Messages between every two ranks of a run, over one connection each: a Unix socket where they
// share a host, else TCP. A message belongs to a stream of its sender; the k-th message of a stream
// matches the receiver's k-th receive on it, whichever comes first: a message without a receive is
// kept. One thread calls; `abort` may come from another. Data moves only inside `send` and
// `progress`.
//
// A peer has proved that it belongs to the run (launch/handshake.hpp). Its messages are still not
// trusted: one of an unexpected size, or one for which there is no memory, fails the run.
//
// A peer may close its connection when all its messages have been sent: only a rank that still
// waits for it, or has a message for it, fails.

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "executor/fabric/open_calls.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor {

using Stream = std::uint64_t;

/// Memory of a message.
struct WireBlock {
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0;

  std::byte* data() const { return memory.get(); }
};

inline constexpr std::size_t read_ahead = 64 << 10;  // bytes: one call reads several small messages

/// The connections of one rank.
class Wire {
 public:
  using Done = std::function<void()>;
  using Taken = std::function<void(WireBlock)>;

  /// peers  connections by rank; one's own is empty
  Wire(int rank, std::vector<Socket> peers);
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }

  /// `data` stays until `done`, which may come before `send` returns.
  void send(int peer, Stream stream, const std::byte* data, std::size_t size, Done done);
  /// Sends a block, and gives it back to the pool afterwards.
  void send(int peer, Stream stream, WireBlock block, std::size_t size, Done done);
  /// Errors  the message has another size: RunFailure{peer_failed}, here or in `progress`
  void receive(int peer, Stream stream, std::byte* into, std::size_t size, Done done);
  /// Receives a message and hands over its block, without a copy.
  void take(int peer, Stream stream, std::size_t size, Taken taken);

  /// Blocks of a pool.
  WireBlock block(std::size_t size);
  void give_back(WireBlock block);

  /// Moves what can move; sleeps for at most `patience` if nothing can.
  /// Errors  RunFailure{peer_failed}: aborted, or a peer is lost that is still needed
  void progress(std::chrono::milliseconds patience);
  void refuse_if_aborted() { abort_.refuse_if_asked(); }
  void abort(std::string_view why) noexcept;

 private:
  struct Header {
    Stream stream = 0;
    std::uint64_t size = 0;
  };
  struct Outgoing {
    Header header{};
    const std::byte* data = nullptr;
    std::size_t sent = 0;  // of header and data together
    WireBlock owned{};
    Done done{};
  };
  struct Posted {
    std::byte* into = nullptr;
    std::size_t size = 0;
    Done done{};
    Taken taken{};  // where `into` is null
  };
  struct Arrived {
    WireBlock block;
    std::size_t size = 0;
  };
  struct Line {  // of one stream: at most one of the two is not empty
    std::deque<Posted> posted;
    std::deque<Arrived> arrived;
  };
  struct Peer {
    int rank = 0;
    Socket socket;
    std::deque<Outgoing> out;
    std::unordered_map<Stream, Line> lines;
    std::size_t expected = 0;  // posted receives, and the one in progress
    std::string lost;          // why the connection ended
    // State of the message that is being read.
    std::unique_ptr<std::byte[]> buffer;
    std::size_t begin = 0, end = 0;  // unread part of the buffer
    bool in_message = false, bound = false;
    Header header;
    std::size_t got = 0;
    Posted target;    // where bound
    WireBlock block;  // where there is no `into`
  };

  void post(Peer& peer, Stream stream, Posted posted);
  void enqueue(Peer& peer, Outgoing message);
  void write(Peer& peer);
  void read(Peer& peer);
  bool fill(Peer& peer, std::byte* to, std::size_t size, std::size_t& got);
  void begin_message(Peer& peer);
  void end_message(Peer& peer);
  void complete(const Peer& peer, Posted& posted, WireBlock block, std::size_t size);
  WireBlock block_for(const Peer& peer, std::uint64_t size);
  bool fill_block(Peer& peer);
  void require(const Peer& peer) const;

  int rank_;
  std::vector<Peer> peers_;  // by rank; one's own is empty
  std::vector<WireBlock> pool_;
  std::vector<pollfd> watched_;  // for `progress`; members to reuse their memory
  std::vector<Peer*> whose_;
  Socket wake_;
  FabricAbort abort_;
};

/// Connects every two ranks: each calls all lower ranks, whose addresses it finds in the store, and
/// is called by all higher ones. Returns connections by rank; one's own is empty.
/// Errors  RunFailure{peer_failed}: `ranks 2 3 did not connect within 30 s`
std::vector<Socket> connected_ranks(Store& store, std::chrono::milliseconds patience);

}  // namespace orrery::executor
