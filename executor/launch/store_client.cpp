#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <thread>

#include "executor/errors.hpp"
#include "executor/launch/frame.hpp"
#include "executor/launch/store.hpp"

namespace orrery::executor {

namespace {

/// The server answers within this beyond what a caller is willing to wait.
constexpr std::chrono::seconds grace{5};

std::string receive_frame(const Socket& socket, Deadline deadline, std::string_view peer) {
  char head[4];
  receive_all(socket, head, sizeof head, deadline, peer);
  const std::uint64_t size = FrameReader{{head, sizeof head}}.number(4);
  if (size > store_frame_limit) {
    throw RunFailure{Exit::peer_failed, fmt::format("{} sent no frame of a store", peer)};
  }
  std::string frame(size, '\0');
  receive_all(socket, frame.data(), size, deadline, peer);
  return frame;
}

std::string store_name(const Address& server) {
  return fmt::format("rank 0's store at {}", text_of(server));
}

}  // namespace

Store::Store(const Address& server, const StoreIdentity& identity, int rank,
             std::chrono::milliseconds patience, const LastWill& will)
    : server_{server}, rank_{rank}, ranks_{identity.ranks} {
  const Deadline deadline = Clock::now() + patience;
  socket_ = connect_to(server, deadline);
  send_immediately(socket_);
  const std::string hello = FrameWriter{}
                                .text(store_magic)
                                .number(store_version, 4)
                                .number(static_cast<std::uint64_t>(identity.ranks), 4)
                                .number(static_cast<std::uint64_t>(rank), 4)
                                .text(identity.job)
                                .text(will.key)
                                .text(will.value)
                                .framed();
  const std::string peer = store_name(server);
  send_all(socket_, hello.data(), hello.size(), deadline + grace, peer);
  const std::string answer = receive_frame(socket_, deadline + grace, peer);
  FrameReader reader{answer};
  if (static_cast<StoreAnswer>(reader.number(1)) != StoreAnswer::done) {
    throw RunFailure{Exit::peer_failed, fmt::format("{} refuses: {}", peer, reader.text())};
  }
}

Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

std::string Store::ask(std::uint8_t verb, std::string_view key, std::string_view value,
                       std::chrono::milliseconds patience, bool* found) {
  const Deadline deadline = Clock::now() + patience + grace;
  const std::string peer = store_name(server_);
  const std::string request = FrameWriter{}
                                  .number(verb, 1)
                                  .number(static_cast<std::uint64_t>(patience.count()), 4)
                                  .text(key)
                                  .text(value)
                                  .framed();
  send_all(socket_, request.data(), request.size(), deadline, peer);
  const std::string answer = receive_frame(socket_, deadline, peer);
  FrameReader reader{answer};
  const auto status = static_cast<StoreAnswer>(reader.number(1));
  std::string text = reader.text();
  if (status == StoreAnswer::refused) throw RunFailure{Exit::peer_failed, text};
  if (found != nullptr) *found = status == StoreAnswer::done;
  return text;
}

void Store::set(std::string_view key, std::string_view value) {
  ask(static_cast<std::uint8_t>(StoreVerb::set), key, value, {});
}

std::string Store::first(std::string_view key, std::string_view value) {
  return ask(static_cast<std::uint8_t>(StoreVerb::first), key, value, {});
}

std::optional<std::string> Store::find(std::string_view key) {
  bool found = false;
  std::string value = ask(static_cast<std::uint8_t>(StoreVerb::find), key, {}, {}, &found);
  if (!found) return std::nullopt;
  return value;
}

std::string Store::get(std::string_view key, std::chrono::milliseconds patience) {
  return ask(static_cast<std::uint8_t>(StoreVerb::get), key, {}, patience);
}

std::int64_t Store::add(std::string_view key, std::int64_t amount) {
  return std::stoll(
      ask(static_cast<std::uint8_t>(StoreVerb::add), key, std::to_string(amount), {}));
}

void Store::erase(std::string_view key) {
  ask(static_cast<std::uint8_t>(StoreVerb::erase), key, {}, {});
}

void Store::barrier(std::string_view name, std::chrono::milliseconds patience) {
  ask(static_cast<std::uint8_t>(StoreVerb::barrier), name, {}, patience);
}

Clock::duration Store::clock_offset() {
  constexpr int questions = 32;
  Clock::duration quickest = Clock::duration::max(), offset{};
  for (int i = 0; i < questions; ++i) {
    const auto asked = Clock::now();
    const Clock::time_point theirs{
        Clock::duration{std::stoll(ask(static_cast<std::uint8_t>(StoreVerb::now), {}, {}, {}))}};
    const auto told = Clock::now();
    if (told - asked >= quickest) continue;
    quickest = told - asked;
    offset = theirs - (asked + quickest / 2);
  }
  return offset;
}

void Store::leave() noexcept {
  if (!socket_) return;
  try {
    ask(static_cast<std::uint8_t>(StoreVerb::leave), {}, {}, {});
  } catch (const std::exception&) {  // the server has gone first: there is nobody to tell
  }
  socket_.close();
}

void Store::interrupt() noexcept {
  ::shutdown(socket_.descriptor(), SHUT_RDWR);
}

std::string text_of_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t shown = 8;
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (std::size_t i = 0; i < ranks.size() && i < shown; ++i) text += fmt::format(" {}", ranks[i]);
  if (ranks.size() > shown) text += fmt::format(" and {} more", ranks.size() - shown);
  return text;
}

void publish_address(const std::string& path, const Address& address) {
  const std::string temporary = fmt::format("{}.{}", path, getpid());
  std::ofstream file{temporary};
  file << text_of(address) << '\n' << std::flush;
  if (!file || std::rename(temporary.c_str(), path.c_str()) != 0) {
    throw RunFailure{Exit::local_failure, fmt::format("{}: cannot be written", path)};
  }
}

Address published_address(const std::string& path, std::chrono::milliseconds patience) {
  const Deadline deadline = Clock::now() + patience;
  do {
    std::ifstream file{path};
    std::string line;
    if (std::getline(file, line)) return parse_address(line, path);
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  } while (Clock::now() < deadline);
  throw RunFailure{Exit::peer_failed,
                   fmt::format("no rank 0 within {} s: {} is not there",
                               std::chrono::ceil<std::chrono::seconds>(patience).count(), path)};
}

}  // namespace orrery::executor
