#pragma once
// The folder of this user on this machine, which no other user can enter (0700): it holds the
// sockets at which ranks of one host connect, and the secret of ranks that are started by hand.

#include <string>

#include "executor/launch/environment.hpp"

namespace orrery::executor {

/// `orrery` in XDG_RUNTIME_DIR where that folder is the user's alone, else /tmp/orrery-UID. Made if
/// it is not there.
/// Errors  as `require_private`
std::string private_folder(const Environment& environment);

/// Requires a folder, not a link to one, that belongs to this user and is closed to all others.
/// Errors  RunFailure{local_failure}: `PATH: expected a folder that only user 1000 can enter,
///         found a folder of user 7; remove it, or set XDG_RUNTIME_DIR`
void require_private(const std::string& path);

/// A path there for a new Unix socket.
Address unused_socket(const Environment& environment);
Address unused_socket();  // by this process's environment

}  // namespace orrery::executor
