#pragma once
// Accepts connections of ranks: does the handshakes of many callers at once (handshake.hpp) and
// hands over those that belong to the run. A caller that is silent, slow or wrong costs 4 KiB for
// at most five seconds; when too many are in their handshake, the oldest is dropped; when the
// process has no descriptor left, accepting pauses.

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "executor/launch/handshake.hpp"

namespace orrery::executor {

/// TCP or a Unix socket.
using StreamProtocol = boost::asio::generic::stream_protocol;
using StreamSocket = StreamProtocol::socket;

/// A run has two connections of each rank (its own, its watchdog's); at most as many callers again
/// may be in their handshake.
inline constexpr std::size_t handshakes_per_rank = 2;

/// The listener of one service.
class Acceptor {
 public:
  /// Takes the socket of a caller that belongs to the run; `welcome` must be sent to it first.
  /// False: the caller is refused, because another one with its claims is connected.
  using Enter =
      std::function<bool(const Claims& claims, StreamSocket& socket, const std::string& welcome)>;

  /// Works while `context` runs, in whose thread `enter` is called.
  Acceptor(boost::asio::io_context& context, Socket listener, Service service,
           StoreIdentity identity, Enter enter);

 private:
  struct Caller;
  using Callers = std::list<std::shared_ptr<Caller>>;

  void accept();
  void start(StreamSocket socket);
  void read(const std::shared_ptr<Caller>& caller);
  void reply(const std::shared_ptr<Caller>& caller, HandshakeServer::Result result);
  void drop(std::shared_ptr<Caller> caller);

  boost::asio::io_context& context_;
  boost::asio::basic_socket_acceptor<StreamProtocol> listener_;
  boost::asio::steady_timer pause_;
  Service service_;
  StoreIdentity identity_;
  Enter enter_;
  Callers callers_;  // in their handshake, the oldest first
};

}  // namespace orrery::executor
