#pragma once
// Where the ranks of a run connect and what authenticates them, which each rank finds by itself:
//
//   `orrery execute`'s own ranks     the Unix socket that ORRERY_STORE names
//   all of a launcher's on one host  a Unix socket in the user's private folder, by the job's name
//   MPI's fabric, several hosts      what rank 0 broadcasts over it: its address, a random secret
//   --address on the loopback        TCP there; ORRERY_SECRET, else the user's own secret
//   --address, or several hosts      TCP at that address alone; ORRERY_SECRET, else no secret

#include <optional>
#include <string>

#include "executor/launch/environment.hpp"
#include "executor/launch/handshake.hpp"

namespace orrery::executor {

/// An address and the secret that callers must know.
struct Rendezvous {
  Address address{};
  std::optional<Secret> secret{};

  /// Can anyone who reaches the address join?
  bool open() const { return address.path.empty() && !secret; }
};

/// nullopt: rank 0 broadcasts it over MPI.
/// Errors  ranks on several hosts without an address: InputError `--address: missing: ...`
std::optional<Rendezvous> rendezvous_of(const Placement& placed, const Environment& environment);

/// Writes and reads what rank 0 broadcasts over MPI.
/// Errors  RunFailure{peer_failed}: `rank 0 broadcast no address`
std::string text_of(const Rendezvous& place);
Rendezvous parse_rendezvous(const std::string& text);

/// "no ORRERY_SECRET: anyone who reaches 10.0.0.1:29500 can join this run".
std::string warning_of(const Rendezvous& place);

}  // namespace orrery::executor
