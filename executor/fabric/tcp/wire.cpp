#include "executor/fabric/tcp/wire.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::size_t pooled_size = 256 << 10;  // bytes of the blocks that are kept
constexpr std::size_t most_pooled = 64;
constexpr std::size_t messages_at_once = 8;

}  // namespace

Wire::Wire(int rank, std::vector<Socket> peers)
    : rank_{rank}, peers_(peers.size()), wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    peers_[i].rank = static_cast<int>(i);
    if (!peers[i]) continue;
    make_nonblocking(peers[i]);
    send_immediately(peers[i].descriptor());
    peers_[i].socket = std::move(peers[i]);
    peers_[i].buffer = std::make_unique<std::byte[]>(read_ahead);
  }
}

WireBlock Wire::block(std::size_t size) {
  if (size <= pooled_size && size > pooled_size / 8) {
    if (!pool_.empty()) {
      WireBlock kept = std::move(pool_.back());
      pool_.pop_back();
      return kept;
    }
    size = pooled_size;
  }
  return {std::unique_ptr<std::byte[]>{new std::byte[size]}, size};
}

void Wire::give_back(WireBlock block) {
  if (block.capacity == pooled_size && pool_.size() < most_pooled) {
    pool_.push_back(std::move(block));
  }
}

void Wire::require(const Peer& peer) const {
  if (!peer.lost.empty()) throw RunFailure{Exit::peer_failed, peer.lost};
}

void Wire::send(int peer, Stream stream, const std::byte* data, std::size_t size, Done done) {
  enqueue(peers_.at(static_cast<std::size_t>(peer)),
          {.header = {stream, size}, .data = data, .owned = {}, .done = std::move(done)});
}

void Wire::send(int peer, Stream stream, WireBlock block, std::size_t size, Done done) {
  const std::byte* data = block.data();
  enqueue(
      peers_.at(static_cast<std::size_t>(peer)),
      {.header = {stream, size}, .data = data, .owned = std::move(block), .done = std::move(done)});
}

void Wire::enqueue(Peer& peer, Outgoing message) {
  ensure(static_cast<bool>(peer.socket) || !peer.lost.empty(), "a rank sends to itself");
  require(peer);
  peer.out.push_back(std::move(message));
  if (peer.out.size() == 1) write(peer);
}

void Wire::write(Peer& peer) {
  while (!peer.out.empty()) {
    iovec parts[2 * messages_at_once];
    std::size_t count = 0;
    for (std::size_t i = 0; i < peer.out.size() && i < messages_at_once; ++i) {
      Outgoing& each = peer.out[i];
      constexpr std::size_t head = sizeof(Header);
      if (each.sent < head) {
        parts[count++] = {reinterpret_cast<char*>(&each.header) + each.sent, head - each.sent};
      }
      const std::size_t sent = each.sent > head ? each.sent - head : 0;
      if (each.header.size > sent) {
        parts[count++] = {const_cast<std::byte*>(each.data) + sent, each.header.size - sent};
      }
    }
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    const ssize_t written =
        ::sendmsg(peer.socket.descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      peer.lost = fmt::format("rank {} vanished ({})", peer.rank, std::strerror(errno));
      peer.socket.close();
      require(peer);
    }
    auto left = static_cast<std::size_t>(written);
    while (!peer.out.empty()) {
      Outgoing& each = peer.out.front();
      const std::size_t rest = sizeof(Header) + each.header.size - each.sent;
      each.sent += std::min(left, rest);
      if (left < rest) break;
      left -= rest;
      Outgoing finished = std::move(each);
      peer.out.pop_front();
      if (finished.owned.memory) give_back(std::move(finished.owned));
      if (finished.done) finished.done();
    }
  }
}

void Wire::progress(std::chrono::milliseconds patience) {
  refuse_if_aborted();
  watched_.assign(1, {wake_.descriptor(), POLLIN, 0});
  whose_.clear();
  for (Peer& each : peers_) {
    if (each.expected > 0 || !each.out.empty()) require(each);
    if (!each.socket) continue;
    const short events = each.out.empty() ? POLLIN : POLLIN | POLLOUT;
    watched_.push_back({each.socket.descriptor(), events, 0});
    whose_.push_back(&each);
  }
  const int ready = ::poll(watched_.data(), watched_.size(), static_cast<int>(patience.count()));
  for (std::size_t i = 0; ready > 0 && i < whose_.size(); ++i) {
    const short events = watched_[i + 1].revents;
    if ((events & POLLOUT) != 0) write(*whose_[i]);
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(*whose_[i]);
  }
  refuse_if_aborted();
}

void Wire::abort(std::string_view why) noexcept {
  abort_.ask(why);
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.descriptor(), &one, sizeof one);
}

}  // namespace orrery::executor
