#include "executor/launch/acceptor.hpp"

#include <fcntl.h>

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

namespace orrery::executor {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

constexpr std::chrono::seconds for_handshake{5};
constexpr std::chrono::milliseconds without_descriptors{100};

}  // namespace

struct Acceptor::Caller {
  Caller(StreamSocket accepted, asio::io_context& context, HandshakeServer asked)
      : socket{std::move(accepted)},
        patience{context, for_handshake},
        handshake{std::move(asked)} {}

  StreamSocket socket;
  asio::steady_timer patience;
  HandshakeServer handshake;
  std::string bytes;
};

Acceptor::Acceptor(asio::io_context& context, Socket listener, Service service,
                   StoreIdentity identity, Enter enter)
    : context_{context},
      listener_{context},
      pause_{context},
      service_{service},
      identity_{std::move(identity)},
      enter_{std::move(enter)} {
  const int family = family_of(listener);
  listener_.assign(StreamProtocol{family, 0}, listener.release());
  accept();
}

void Acceptor::accept() {
  listener_.async_accept([this](const error_code& error, StreamSocket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      start(std::move(socket));
      return accept();
    }
    // Out of descriptors or memory: callers wait in the system's queue, and we do not spin.
    pause_.expires_after(without_descriptors);
    pause_.async_wait([this](const error_code& ended) {
      if (!ended) accept();
    });
  });
}

void Acceptor::start(StreamSocket socket) {
  ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  send_immediately(socket.native_handle());
  const std::size_t most = handshakes_per_rank * static_cast<std::size_t>(identity_.ranks);
  if (callers_.size() >= most) drop(callers_.front());
  const auto caller = std::make_shared<Caller>(
      std::move(socket), context_, HandshakeServer{service_, identity_, random_nonce()});
  callers_.push_back(caller);
  caller->patience.async_wait([this, caller](const error_code& ended) {
    if (!ended) drop(caller);
  });
  read(caller);
}

void Acceptor::read(const std::shared_ptr<Caller>& caller) {
  caller->bytes.resize(caller->handshake.wanted());
  asio::async_read(caller->socket, asio::buffer(caller->bytes),
                   [this, caller](const error_code& error, std::size_t) {
                     if (error) return drop(caller);
                     reply(caller, caller->handshake.receive(caller->bytes));
                   });
}

void Acceptor::reply(const std::shared_ptr<Caller>& caller, HandshakeServer::Result result) {
  std::string said = caller->handshake.answer();
  if (result == HandshakeServer::Result::accepted) {
    if (enter_(caller->handshake.claims(), caller->socket, said)) return drop(caller);
    result = HandshakeServer::Result::refused;
    said = HandshakeServer::refusal();
  }
  if (said.empty()) return read(caller);
  caller->bytes = std::move(said);
  asio::async_write(caller->socket, asio::buffer(caller->bytes),
                    [this, caller, result](const error_code& error, std::size_t) {
                      if (error || result == HandshakeServer::Result::refused) return drop(caller);
                      read(caller);
                    });
}

/// Forgets the caller; its socket is closed, unless it was taken.
void Acceptor::drop(std::shared_ptr<Caller> caller) {
  error_code ignored;
  caller->patience.cancel(ignored);
  caller->socket.close(ignored);
  callers_.remove(caller);
}

}  // namespace orrery::executor
