#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <list>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "executor/launch/frame.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor {

class StoreServer::State {
 public:
  State(const Address& where, StoreIdentity identity)
      : identity_{std::move(identity)}, listener_{listen_on(where)}, host_{where.host} {
    make_nonblocking(listener_);
    stop_ = Socket{::eventfd(0, EFD_CLOEXEC)};
    thread_ = std::thread{[this] { serve(); }};
  }
  ~State() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(stop_.descriptor(), &one, sizeof one);
    thread_.join();
  }

  Address address() const { return {host_, local_address(listener_).port}; }
  int connections() const { return connections_; }

 private:
  /// A client, and what it waits for.
  struct Client {
    Socket socket;
    std::string in, out;
    int rank = -1;  // until it has said hello
    LastWill will;
    std::optional<StoreVerb> waits;  // get or barrier
    std::string key;
    std::chrono::milliseconds patience{};
    Deadline deadline{};
    bool leaving = false;  // closed once `out` is empty
  };

  void serve() {
    for (;;) {
      std::vector<pollfd> watched{{stop_.descriptor(), POLLIN, 0},
                                  {listener_.descriptor(), POLLIN, 0}};
      Deadline next = Clock::now() + std::chrono::minutes{1};
      for (const Client& each : clients_) {
        const short events = each.out.empty() ? POLLIN : POLLIN | POLLOUT;
        watched.push_back({each.socket.descriptor(), events, 0});
        if (each.waits) next = std::min(next, each.deadline);
      }
      ::poll(watched.data(), watched.size(), poll_timeout(next));
      if (watched[0].revents != 0) return;
      std::size_t i = 2;
      for (Client& each : clients_) {
        if ((watched[i++].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(each);
      }
      if (watched[1].revents != 0) welcome();
      give_up_waiting();
      for (Client& each : clients_) write(each);
      clients_.remove_if([](const Client& each) { return !each.socket; });
      connections_ = static_cast<int>(clients_.size());
    }
  }

  void welcome() {
    for (;;) {
      Socket peer{::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC)};
      if (!peer) return;
      make_nonblocking(peer);
      send_immediately(peer);
      clients_.emplace_back().socket = std::move(peer);
    }
  }

  void read(Client& client) {
    char buffer[65536];
    for (;;) {
      const ssize_t got = ::recv(client.socket.descriptor(), buffer, sizeof buffer, 0);
      if (got > 0) {
        client.in.append(buffer, static_cast<std::size_t>(got));
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      const bool alive = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
      take_frames(client);
      if (!alive) lose(client);
      return;
    }
  }

  void take_frames(Client& client) {
    while (client.in.size() >= 4) {
      const std::uint64_t size = FrameReader{client.in}.number(4);
      if (size > store_frame_limit) return refuse(client, "the frame is larger than 64 MiB");
      if (client.in.size() < 4 + size) return;
      const std::string frame = client.in.substr(4, size);
      client.in.erase(0, 4 + size);
      if (client.leaving) return;
      client.rank < 0 ? greet(client, frame) : serve(client, frame);
    }
  }

  void greet(Client& client, const std::string& frame) {
    FrameReader reader{frame};
    if (reader.text() != store_magic) return refuse(client, "this is not a rank of orrery");
    const std::uint64_t version = reader.number(4), ranks = reader.number(4);
    const std::uint64_t rank = reader.number(4);
    const std::string job = reader.text();
    if (version != store_version) {
      return refuse(client, fmt::format("the protocol is version {} here and {} there",
                                        store_version, version));
    }
    if (job != identity_.job) {
      return refuse(client, fmt::format("this is job '{}', not '{}'", identity_.job, job));
    }
    const auto world = static_cast<std::uint64_t>(identity_.ranks);
    if (ranks != world) {
      return refuse(client, fmt::format("there are {} ranks here, not {}", world, ranks));
    }
    client.will.key = reader.text();
    client.will.value = reader.text();
    if (!reader.whole() || rank >= world) return refuse(client, "the greeting makes no sense");
    client.rank = static_cast<int>(rank);
    joined_.insert(client.rank);
    answer(client, StoreAnswer::done, "");
  }

  void serve(Client& client, const std::string& frame) {
    FrameReader reader{frame};
    const auto verb = static_cast<StoreVerb>(reader.number(1));
    client.patience = std::chrono::milliseconds{reader.number(4)};
    client.deadline = Clock::now() + client.patience;
    client.key = reader.text();
    const std::string value = reader.text();
    if (!reader.whole()) return refuse(client, "the request makes no sense");
    const auto found = table_.find(client.key);
    const bool there = found != table_.end();
    switch (verb) {
      case StoreVerb::set:
        write_value(client.key, value);
        return answer(client, StoreAnswer::done, "");
      case StoreVerb::first:
        if (!there) write_value(client.key, value);
        return answer(client, StoreAnswer::done, there ? found->second : value);
      case StoreVerb::find:
        return answer(client, there ? StoreAnswer::done : StoreAnswer::absent,
                      there ? found->second : "");
      case StoreVerb::get:
        if (there) return answer(client, StoreAnswer::done, found->second);
        client.waits = verb;
        return;
      case StoreVerb::add:
        return add(client, value);
      case StoreVerb::erase:
        table_.erase(client.key);
        return answer(client, StoreAnswer::done, "");
      case StoreVerb::barrier:
        return arrive(client);
      case StoreVerb::now:
        return answer(client, StoreAnswer::done,
                      std::to_string(Clock::now().time_since_epoch().count()));
      case StoreVerb::leave:
        client.will = {};
        answer(client, StoreAnswer::done, "");
        client.leaving = true;
        return;
    }
    refuse(client, "the verb is unknown");
  }

  void add(Client& client, const std::string& amount) {
    const auto found = table_.find(client.key);
    const char* before = found == table_.end() ? "0" : found->second.c_str();
    const long long sum =
        std::strtoll(before, nullptr, 10) + std::strtoll(amount.c_str(), nullptr, 10);
    write_value(client.key, std::to_string(sum));
    answer(client, StoreAnswer::done, std::to_string(sum));
  }

  void arrive(Client& client) {
    std::set<int>& arrived = barriers_[client.key];
    arrived.insert(client.rank);
    client.waits = StoreVerb::barrier;
    if (arrived.size() < static_cast<std::size_t>(identity_.ranks)) return;
    const std::string name = client.key;
    barriers_.erase(name);
    for (Client& each : clients_) {
      if (each.waits == StoreVerb::barrier && each.key == name) {
        answer(each, StoreAnswer::done, "");
      }
    }
  }

  void write_value(const std::string& key, const std::string& value) {
    table_[key] = value;
    for (Client& each : clients_) {
      if (each.waits == StoreVerb::get && each.key == key) answer(each, StoreAnswer::done, value);
    }
  }

  void give_up_waiting() {
    const Deadline now = Clock::now();
    for (Client& each : clients_) {
      if (!each.waits || each.deadline > now) continue;
      const auto seconds = std::chrono::ceil<std::chrono::seconds>(each.patience).count();
      if (each.waits == StoreVerb::get) {
        const std::vector<int> missing = without(joined_);
        const std::string who =
            missing.empty() ? "" : fmt::format("; missing: {}", text_of_ranks(missing));
        answer(each, StoreAnswer::refused,
               fmt::format("nobody set '{}' within {} s{}", each.key, seconds, who));
      } else {
        answer(each, StoreAnswer::refused,
               fmt::format("barrier '{}' was not reached within {} s by {}", each.key, seconds,
                           text_of_ranks(without(barriers_[each.key]))));
      }
    }
  }

  std::vector<int> without(const std::set<int>& there) const {
    std::vector<int> missing;
    for (int rank = 0; rank < identity_.ranks; ++rank) {
      if (there.count(rank) == 0) missing.push_back(rank);
    }
    return missing;
  }

  void answer(Client& client, StoreAnswer status, std::string_view text) {
    client.waits.reset();
    client.out += FrameWriter{}.number(static_cast<std::uint8_t>(status), 1).text(text).framed();
    write(client);
  }

  void refuse(Client& client, std::string_view why) {
    answer(client, StoreAnswer::refused, why);
    client.leaving = true;
  }

  void write(Client& client) {
    while (client.socket && !client.out.empty()) {
      const ssize_t sent = ::send(client.socket.descriptor(), client.out.data(), client.out.size(),
                                  MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0) return;  // later, or `read` sees that it has gone
      client.out.erase(0, static_cast<std::size_t>(sent));
    }
    if (client.leaving) client.socket.close();
  }

  void lose(Client& client) {
    client.socket.close();
    client.waits.reset();
    if (client.will.key.empty() || table_.count(client.will.key) != 0) return;
    write_value(client.will.key, client.will.value);
  }

  StoreIdentity identity_;
  Socket listener_, stop_;
  std::string host_;
  std::list<Client> clients_;
  std::map<std::string, std::string> table_;
  std::map<std::string, std::set<int>> barriers_;
  std::set<int> joined_;
  std::atomic<int> connections_{0};
  std::thread thread_;
};

StoreServer::StoreServer(const Address& where, StoreIdentity identity)
    : state_{std::make_unique<State>(where, std::move(identity))} {}
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
