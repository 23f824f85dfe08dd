#include <fmt/format.h>
#include <sys/socket.h>

#include <charconv>

#include "executor/errors.hpp"
#include "executor/launch/store.hpp"
#include "executor/launch/store_table.hpp"

namespace orrery::executor {

namespace {

/// How long the server may take to answer beyond what a caller is willing to wait.
constexpr std::chrono::seconds grace{5};

[[noreturn]] void unreadable(std::string_view peer) {
  throw RunFailure{Exit::peer_failed, fmt::format("{} sent an answer that cannot be read", peer)};
}

std::string receive_frame(const Socket& socket, Deadline deadline, std::string_view peer) {
  char head[4];
  receive_all(socket, head, sizeof head, deadline, peer);
  const std::uint64_t size = FrameReader{{head, sizeof head}}.number(4);
  if (size > store_frame_limit) unreadable(peer);
  std::string frame(size, '\0');
  receive_all(socket, frame.data(), size, deadline, peer);
  return frame;
}

std::string store_name(const Address& server) {
  return fmt::format("rank 0's store at {}", text_of(server));
}

}  // namespace

Store::Store(const Address& server, const StoreIdentity& identity, const Claims& claims,
             std::chrono::milliseconds patience)
    : server_{server}, identity_{identity}, rank_{claims.rank} {
  socket_ = authenticated_socket(server, Service::store, identity, claims, Clock::now() + patience,
                                 store_name(server));
}

Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;
Store::~Store() = default;

std::string Store::ask(StoreVerb verb, std::string_view key, std::string_view value,
                       std::chrono::milliseconds patience, bool* found) {
  const Deadline deadline = Clock::now() + patience + grace;
  const std::string peer = store_name(server_);
  const std::string request = FrameWriter{}
                                  .number(static_cast<std::uint64_t>(verb), 1)
                                  .number(static_cast<std::uint64_t>(patience.count()), 4)
                                  .text(key)
                                  .text(value)
                                  .framed();
  send_all(socket_, request.data(), request.size(), deadline, peer);
  const std::string answer = receive_frame(socket_, deadline, peer);
  FrameReader reader{answer};
  const auto status = static_cast<StoreAnswer>(reader.number(1));
  std::string text = reader.text();
  if (!reader.at_end() || status > StoreAnswer::refused) unreadable(peer);
  if (status == StoreAnswer::refused) throw RunFailure{Exit::peer_failed, text};
  if (found != nullptr) *found = status == StoreAnswer::done;
  return text;
}

std::int64_t Store::number_of(const std::string& text) const {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || rest != end) unreadable(store_name(server_));
  return number;
}

std::optional<std::string> Store::find(std::string_view key) {
  bool found = false;
  std::string value = ask(StoreVerb::find, key, {}, {}, &found);
  if (!found) return std::nullopt;
  return value;
}

Clock::duration Store::clock_offset() {
  constexpr int questions = 32;
  Clock::duration quickest = Clock::duration::max(), offset{};
  for (int i = 0; i < questions; ++i) {
    const auto asked = Clock::now();
    const Clock::time_point theirs{Clock::duration{number_of(ask(StoreVerb::now, {}, {}, {}))}};
    const auto answered = Clock::now();
    if (answered - asked >= quickest) continue;
    quickest = answered - asked;
    offset = theirs - (asked + quickest / 2);
  }
  return offset;
}

void Store::leave() noexcept {
  if (!socket_) return;
  try {
    ask(StoreVerb::leave, {}, {}, {});
  } catch (const std::exception&) {  // the server has ended first
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

}  // namespace orrery::executor
