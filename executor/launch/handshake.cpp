#include "executor/launch/handshake.hpp"

#include <fmt/format.h>

#include <thread>

#include "executor/errors.hpp"
#include "executor/launch/frame.hpp"

namespace orrery::executor {

namespace {

constexpr std::uint64_t handshake_version = 2;
constexpr std::size_t handshake_limit = 4096;  // bytes, all together
constexpr std::size_t magic_size = 8, nonce_size = std::tuple_size_v<Nonce>;
constexpr std::chrono::seconds for_an_answer{5};
constexpr std::chrono::milliseconds before_another_try{50};
constexpr std::size_t hello_size = magic_size + 4 + nonce_size;

std::string_view magic_of(Service service) {
  return service == Service::store ? "ORRERYST" : "ORRERYTW";
}

std::string text_of(const Nonce& nonce) {
  return {reinterpret_cast<const char*>(nonce.data()), nonce.size()};
}

/// The first byte of what is proved, so that one side's proof cannot be used as the other's.
enum class Side : char { caller = 'c', called = 's' };

std::string proof_of(Side side, Service service, const StoreIdentity& identity,
                     const std::string& nonces, std::string_view claims) {
  std::string message(1, static_cast<char>(side));
  message.append(magic_of(service)).append(nonces).append(claims);
  return proof(identity.secret, message);
}

std::string bytes_of(const StoreIdentity& identity, const Claims& claims) {
  return FrameWriter{}
      .number(static_cast<std::uint64_t>(identity.ranks), 4)
      .number(static_cast<std::uint64_t>(claims.rank), 4)
      .number(static_cast<std::uint64_t>(claims.role), 1)
      .text(identity.job)
      .text(claims.will.key)
      .text(claims.will.value)
      .bytes();
}

std::string received(const Socket& socket, std::size_t size, Deadline deadline) {
  std::string bytes(size, '\0');
  receive_all(socket, bytes.data(), size, deadline, "the other end");
  return bytes;
}

}  // namespace

HandshakeServer::HandshakeServer(Service service, const StoreIdentity& identity, const Nonce& nonce)
    : service_{service}, identity_{identity}, nonces_{text_of(nonce)}, wanted_{hello_size} {}

HandshakeServer::Result HandshakeServer::refuse() {
  answer_ = refusal();
  wanted_ = 0;
  return Result::refused;
}

HandshakeServer::Result HandshakeServer::receive(std::string_view bytes) {
  if (bytes.size() != wanted_) return refuse();
  switch (step_) {
    case Step::hello:
      return receive_hello(bytes);
    case Step::size: {
      const std::uint64_t size = FrameReader{bytes}.number(4);
      if (size > handshake_limit - hello_size - proof_size - 4) return refuse();
      step_ = Step::claims;
      wanted_ = size + proof_size;
      answer_.clear();
      return Result::more;
    }
    case Step::claims:
      return receive_claims(bytes);
  }
  return refuse();
}

HandshakeServer::Result HandshakeServer::receive_hello(std::string_view bytes) {
  if (bytes.substr(0, magic_size) != magic_of(service_)) return refuse();
  if (FrameReader{bytes.substr(magic_size)}.number(4) != handshake_version) return refuse();
  answer_ = nonces_;
  nonces_ = std::string{bytes.substr(magic_size + 4)} + nonces_;
  step_ = Step::size;
  wanted_ = 4;
  return Result::more;
}

HandshakeServer::Result HandshakeServer::receive_claims(std::string_view bytes) {
  const std::string_view claims = bytes.substr(0, bytes.size() - proof_size);
  const std::string wanted = proof_of(Side::caller, service_, identity_, nonces_, claims);
  if (!same_proof(bytes.substr(claims.size()), wanted) || !read_claims(claims)) return refuse();
  answer_ = proof_of(Side::called, service_, identity_, nonces_, claims);
  wanted_ = 0;
  return Result::accepted;
}

bool HandshakeServer::read_claims(std::string_view bytes) {
  FrameReader reader{bytes};
  const std::uint64_t ranks = reader.number(4), rank = reader.number(4), role = reader.number(1);
  const std::string job = reader.text();
  claims_.will.key = reader.text();
  claims_.will.value = reader.text();
  if (!reader.at_end() || role > static_cast<std::uint64_t>(PeerRole::watchdog)) return false;
  const auto world = static_cast<std::uint64_t>(identity_.ranks);
  if (job != identity_.job || ranks != world || rank >= world) return false;
  claims_.rank = static_cast<int>(rank);
  claims_.role = static_cast<PeerRole>(role);
  return true;
}

std::string handshake(const Socket& socket, Service service, const StoreIdentity& identity,
                      const Claims& claims, Deadline deadline) {
  const std::string refused = fmt::format(
      "refuses this rank: job '{}', {} ranks, ORRERY_SECRET and the version of orrery must match "
      "those of rank 0, and there can be only one rank {}",
      identity.job, identity.ranks, claims.rank);
  const std::string own = text_of(random_nonce());
  const std::string hello =
      std::string{magic_of(service)} + FrameWriter{}.number(handshake_version, 4).bytes() + own;
  send_all(socket, hello.data(), hello.size(), deadline, "the other end");
  const std::string theirs = received(socket, nonce_size, deadline);
  if (theirs == HandshakeServer::refusal()) return refused;
  const std::string bytes = bytes_of(identity, claims);
  const std::string shown = FrameWriter{}.text(bytes).bytes() +
                            proof_of(Side::caller, service, identity, own + theirs, bytes);
  send_all(socket, shown.data(), shown.size(), deadline, "the other end");
  const std::string answer = received(socket, proof_size, deadline);
  if (answer == HandshakeServer::refusal()) return refused;
  const std::string expected = proof_of(Side::called, service, identity, own + theirs, bytes);
  return same_proof(answer, expected) ? "" : "does not know the run's secret";
}

Socket authenticated_socket(const Address& address, Service service, const StoreIdentity& identity,
                            const Claims& claims, Deadline deadline, const std::string& peer) {
  for (;;) {
    Socket socket = connect_to(address, deadline);
    send_immediately(socket.descriptor());
    std::string why;
    try {
      why = handshake(socket, service, identity, claims, deadline + for_an_answer);
      if (why.empty()) return socket;
    } catch (const RunFailure& lost) {
      if (lost.code() != Exit::peer_failed) throw;
      if (Clock::now() >= deadline) {
        throw RunFailure{Exit::peer_failed, fmt::format("{}: {}", peer, lost.what())};
      }
      std::this_thread::sleep_for(before_another_try);
      continue;
    }
    throw RunFailure{Exit::peer_failed, fmt::format("{} {}", peer, why)};
  }
}

}  // namespace orrery::executor
