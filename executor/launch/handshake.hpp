#pragma once
// The handshake of every connection between ranks: the two ends prove to each other that they
// belong to one run. Until then a caller is not authenticated: it is read in pieces of known size,
// at most 4 KiB, and every error gets the same answer.
//
//   caller  magic of store or wire (8), version (4), a nonce (32)
//   called  a nonce (32)
//   caller  length (4) and claims: ranks, rank, role, job, will; proof (32) of both nonces and them
//   called  proof (32) of both nonces and the claims; or the refusal, 32 bytes of zero
//
// Left out: what comes afterwards is neither encrypted nor signed (executor/SECURITY.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "executor/launch/secret.hpp"
#include "executor/launch/socket.hpp"

namespace orrery::executor {

/// What the ranks of a run must agree on.
struct StoreIdentity {
  std::string job{};
  int ranks = 1;
  std::optional<Secret> secret{};  // nullopt: any peer that reaches the socket is accepted
};

/// A key and a value that the store writes, if the key is not there yet, when this client's
/// connection ends without `leave`: how the peers of a killed rank learn of it.
struct LastWill {
  std::string key{}, value{};
};

/// What a connection is for. Each role of a rank has at most one connection to the store.
enum class PeerRole : std::uint8_t { rank, watchdog };

/// What a caller claims to be.
struct Claims {
  int rank = 0;
  PeerRole role = PeerRole::rank;
  LastWill will{};
};

/// What listens at the socket.
enum class Service : std::uint8_t { store, wire };

/// The side that is called, as a state machine without its socket.
class HandshakeServer {
 public:
  enum class Result : std::uint8_t { more, refused, accepted };

  HandshakeServer(Service service, const StoreIdentity& identity, const Nonce& nonce);
  /// How many bytes are to be read next; no more than 4 KiB all together.
  std::size_t wanted() const { return wanted_; }
  /// Takes exactly that many bytes.
  Result receive(std::string_view bytes);
  /// The bytes to send now; empty: none.
  const std::string& answer() const { return answer_; }
  /// The caller's claims; valid once it is accepted.
  const Claims& claims() const { return claims_; }

  static std::string refusal() { return std::string(proof_size, '\0'); }

 private:
  Result receive_hello(std::string_view bytes);
  Result receive_claims(std::string_view bytes);
  Result refuse();
  bool read_claims(std::string_view bytes);

  enum class Step : std::uint8_t { hello, size, claims };

  Service service_;
  StoreIdentity identity_;
  std::string nonces_;
  Step step_ = Step::hello;
  std::size_t wanted_;
  std::string answer_;
  Claims claims_;
};

/// The side that calls. Returns why this rank is refused or the other side is not trusted; empty:
/// both belong to one run. Errors  RunFailure{peer_failed}: the connection is lost
std::string handshake(const Socket& socket, Service service, const StoreIdentity& identity,
                      const Claims& claims, Deadline deadline);

/// Connects and does the handshake, and tries again where the connection is lost before the answer:
/// a flood of callers at an address makes others wait, but not fail.
/// Errors  RunFailure{peer_failed}: `PEER refuses this rank: ...`, or as `connect_to`
Socket authenticated_socket(const Address& address, Service service, const StoreIdentity& identity,
                            const Claims& claims, Deadline deadline, const std::string& peer);

}  // namespace orrery::executor
