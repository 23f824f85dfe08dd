// The receiving side of a Wire: hands messages to posted receives, or keeps them for later ones.

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "executor/device/copy_bytes.hpp"
#include "executor/errors.hpp"
#include "executor/fabric/tcp/wire.hpp"

namespace orrery::executor {

namespace {

constexpr std::uint64_t first_block = 1 << 20;  // bytes at first, where no receive is posted
constexpr std::uint64_t largest_message = std::uint64_t{1} << 38;  // bytes: beyond any memory

[[noreturn]] void wrong_message(int rank, const std::string& how) {
  throw RunFailure{Exit::peer_failed, fmt::format("rank {} sent a message {}", rank, how)};
}

void require_size(int rank, std::uint64_t wanted, std::uint64_t found) {
  if (wanted == found) return;
  wrong_message(rank, fmt::format("of {} bytes where {} are expected", found, wanted));
}

}  // namespace

void Wire::receive(int peer, Stream stream, std::byte* into, std::size_t size, Done done) {
  post(peers_.at(static_cast<std::size_t>(peer)), stream,
       {.into = into, .size = size, .done = std::move(done), .taken = {}});
}

void Wire::take(int peer, Stream stream, std::size_t size, Taken taken) {
  post(peers_.at(static_cast<std::size_t>(peer)), stream,
       {.into = nullptr, .size = size, .done = {}, .taken = std::move(taken)});
}

void Wire::post(Peer& peer, Stream stream, Posted posted) {
  Line& line = peer.lines[stream];
  if (line.arrived.empty()) {
    require(peer);
    line.posted.push_back(std::move(posted));
    ++peer.expected;
    return;
  }
  Arrived first = std::move(line.arrived.front());
  line.arrived.pop_front();
  if (line.arrived.empty()) peer.lines.erase(stream);
  complete(peer, posted, std::move(first.block), first.size);
}

void Wire::complete(const Peer& peer, Posted& posted, WireBlock block, std::size_t size) {
  require_size(peer.rank, posted.size, size);
  if (posted.taken) return posted.taken(std::move(block));
  if (block.memory && size > 0) copy_bytes(posted.into, block.data(), size);
  if (block.memory) give_back(std::move(block));
  if (posted.done) posted.done();
}

/// Reads from the read-ahead buffer or the socket; false when nothing more is available.
bool Wire::fill(Peer& peer, std::byte* to, std::size_t size, std::size_t& got) {
  while (got < size) {
    if (peer.begin < peer.end) {
      const std::size_t part = std::min(size - got, peer.end - peer.begin);
      copy_bytes(to + got, peer.buffer.get() + peer.begin, part);
      peer.begin += part;
      got += part;
      continue;
    }
    // A large rest goes straight to its destination.
    const bool ahead = size - got < read_ahead;
    std::byte* into = ahead ? peer.buffer.get() : to + got;
    const ssize_t read =
        ::recv(peer.socket.descriptor(), into, ahead ? read_ahead : size - got, MSG_DONTWAIT);
    if (read > 0) {
      if (ahead) {
        peer.begin = 0;
        peer.end = static_cast<std::size_t>(read);
      } else {
        got += static_cast<std::size_t>(read);
      }
    } else if (read == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      peer.lost = read == 0 ? fmt::format("rank {} closed its connection", peer.rank)
                            : fmt::format("rank {} vanished ({})", peer.rank, std::strerror(errno));
      peer.socket.close();
      return false;
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

void Wire::read(Peer& peer) {
  while (peer.socket) {
    if (!peer.in_message) {
      auto* head = reinterpret_cast<std::byte*>(&peer.header);
      if (!fill(peer, head, sizeof peer.header, peer.got)) break;
      begin_message(peer);
    }
    const bool in_place = peer.bound && peer.target.into != nullptr;
    if (in_place ? !fill(peer, peer.target.into, peer.header.size, peer.got) : !fill_block(peer)) {
      break;
    }
    end_message(peer);
  }
}

void Wire::begin_message(Peer& peer) {
  peer.in_message = true;
  peer.got = 0;
  const auto line = peer.lines.find(peer.header.stream);
  peer.bound = line != peer.lines.end() && !line->second.posted.empty();
  if (peer.bound) {
    peer.target = std::move(line->second.posted.front());
    line->second.posted.pop_front();
    require_size(peer.rank, peer.target.size, peer.header.size);
    if (line->second.posted.empty()) peer.lines.erase(line);
  }
  if (peer.bound && peer.target.into != nullptr) return;
  const std::uint64_t size = peer.header.size;
  peer.block = block_for(peer, peer.bound ? size : std::min(size, first_block));
}

/// Reads into memory that grows with what has arrived, not with the announced size.
bool Wire::fill_block(Peer& peer) {
  const std::uint64_t size = peer.header.size;
  for (;;) {
    const std::uint64_t room = std::min<std::uint64_t>(size, peer.block.capacity);
    if (!fill(peer, peer.block.data(), room, peer.got)) return false;
    if (peer.got == size) return true;
    WireBlock larger = block_for(peer, std::min(size, 2 * room));
    copy_bytes(larger.data(), peer.block.data(), peer.got);
    peer.block = std::move(larger);
  }
}

WireBlock Wire::block_for(const Peer& peer, std::uint64_t size) {
  try {
    if (peer.header.size <= largest_message) return block(size);
  } catch (const std::bad_alloc&) {  // reported below
  }
  wrong_message(peer.rank,
                fmt::format("of {} bytes, for which there is no memory", peer.header.size));
}

void Wire::end_message(Peer& peer) {
  peer.in_message = false;
  peer.got = 0;
  WireBlock arrived = std::exchange(peer.block, {});
  if (peer.bound) {
    --peer.expected;
    Posted target = std::move(peer.target);
    return complete(peer, target, std::move(arrived), peer.header.size);
  }
  Line& line = peer.lines[peer.header.stream];
  if (line.posted.empty()) {
    line.arrived.push_back({std::move(arrived), peer.header.size});
    return;
  }
  Posted target = std::move(line.posted.front());
  line.posted.pop_front();
  if (line.posted.empty()) peer.lines.erase(peer.header.stream);
  --peer.expected;
  complete(peer, target, std::move(arrived), peer.header.size);
}

}  // namespace orrery::executor
