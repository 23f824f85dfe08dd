#include <unistd.h>

#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/completion_condition.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <map>
#include <thread>

#include "executor/launch/acceptor.hpp"
#include "executor/launch/store.hpp"
#include "executor/launch/store_table.hpp"

namespace orrery::executor {

namespace asio = boost::asio;
using boost::system::error_code;

class StoreServer::State {
 public:
  State(const Address& where, const StoreIdentity& identity)
      : table_{identity.ranks,
               [this](ClientId id, std::string frame) { send(id, std::move(frame)); }} {
    Socket listener = listen_on(where);
    address_ = where;
    if (where.path.empty()) address_.port = local_address(listener).port;
    acceptor_.emplace(
        context_, std::move(listener), Service::store, identity,
        [this](const Claims& claims, StreamSocket& socket, const std::string& welcome) {
          return enter(claims, socket, welcome);
        });
    thread_ = std::thread{[this] { serve(); }};
  }
  ~State() {
    context_.stop();
    thread_.join();
    if (!address_.path.empty()) ::unlink(address_.path.c_str());
  }

  const Address& address() const { return address_; }
  int connections() const { return connections_; }

 private:
  /// A connected client. It sends one request at a time, and nothing while it waits for the answer.
  struct ClientSession {
    ClientSession(ClientId of, StreamSocket taken, asio::io_context& context)
        : id{of}, socket{std::move(taken)}, patience{context} {}

    ClientId id;
    StreamSocket socket;
    asio::steady_timer patience;
    std::string in, out;
    std::uint64_t requests = 0;  // so far, to tell a wait that is over from the current one
  };
  using Client = std::shared_ptr<ClientSession>;

  void serve() {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (const std::exception&) {  // no memory for one request: the others go on
      }
    }
  }

  bool enter(const Claims& claims, StreamSocket& socket, const std::string& welcome) {
    const ClientId id{claims.rank, claims.role};
    if (!table_.join(id, claims.will)) return false;
    sessions_[id] = std::make_shared<ClientSession>(id, std::move(socket), context_);
    ++connections_;
    send(id, welcome);
    return true;
  }

  /// Sends bytes to a client, and then reads its next request.
  void send(ClientId id, std::string bytes) {
    const auto found = sessions_.find(id);
    if (found == sessions_.end()) return;
    const Client client = found->second;
    client->patience.cancel();
    client->out = std::move(bytes);
    asio::async_write(client->socket, asio::buffer(client->out),
                      [this, client](const error_code& error, std::size_t) {
                        client->out = {};
                        error ? lose(client) : read_size(client);
                      });
  }

  void read_size(const Client& client) {
    client->in.resize(4);
    asio::async_read(client->socket, asio::buffer(client->in),
                     [this, client](const error_code& error, std::size_t) {
                       const std::uint64_t size = FrameReader{client->in}.number(4);
                       if (error || size > store_frame_limit) return lose(client);
                       client->in.clear();
                       read_request(client, size);
                     });
  }

  /// Memory grows with what has arrived, not with the announced size.
  void read_request(const Client& client, std::size_t size) {
    asio::async_read(client->socket, asio::dynamic_buffer(client->in, size),
                     asio::transfer_exactly(size),
                     [this, client](const error_code& error, std::size_t) {
                       if (error) return lose(client);
                       serve_request(client);
                     });
  }

  void serve_request(const Client& client) {
    ++client->requests;
    const std::string frame = std::exchange(client->in, {});
    switch (table_.serve(client->id, frame)) {
      case StoreTable::Served::answered:
        return;
      case StoreTable::Served::refused:
        return lose(client);
      case StoreTable::Served::waits:
        return let_wait(client);
    }
  }

  void let_wait(const Client& client) {
    const std::uint64_t request = client->requests;
    const auto still = [this, client, request] {
      return client->requests == request && table_.patience(client->id).has_value();
    };
    client->patience.expires_after(*table_.patience(client->id));
    client->patience.async_wait([this, client, still](const error_code& ended) {
      if (!ended && still()) table_.give_up(client->id);
    });
    // A client that waits sends nothing, so if its socket is readable, the connection has ended.
    client->socket.async_wait(StreamSocket::wait_read, [this, client, still](const error_code&) {
      if (still()) lose(client);
    });
  }

  void lose(const Client& client) {
    error_code ignored;
    client->patience.cancel(ignored);
    client->socket.close(ignored);
    const auto found = sessions_.find(client->id);
    if (found == sessions_.end() || found->second != client) return;
    sessions_.erase(found);
    --connections_;
    table_.lose(client->id);
  }

  asio::io_context context_;  // destroyed last: it owns sockets and timers
  Address address_;
  StoreTable table_;
  std::map<ClientId, Client> sessions_;
  std::atomic<int> connections_{0};
  std::optional<Acceptor> acceptor_;
  std::thread thread_;
};

StoreServer::StoreServer(const Address& where, const StoreIdentity& identity)
    : state_{std::make_unique<State>(where, identity)} {}
StoreServer::~StoreServer() = default;

Address StoreServer::address() const {
  return state_->address();
}

void StoreServer::linger(int connections, std::chrono::milliseconds patience) const {
  const Deadline deadline = Clock::now() + patience;
  while (state_->connections() > connections && Clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
  }
}

}  // namespace orrery::executor
