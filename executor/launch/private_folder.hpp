#pragma once
// The folder of this user on this machine, which nobody else enters (0700): in it lie the sockets
// at which ranks of one host meet, and the secret of ranks that are started here by hand.

#include <string>

#include "executor/launch/environment.hpp"

namespace orrery::executor {

/// `orrery` in XDG_RUNTIME_DIR where that folder is the user's alone, else /tmp/orrery-UID. Made if
/// it is not there.
/// Errors  as `require_private`
std::string private_folder(const Environment& environment);

/// Is it a folder, no link to one, of this user, and closed to all others?
/// Errors  RunFailure{local_failure}: `PATH: expected a folder of user 1000 alone, found one of
///         user 7; remove it, or set XDG_RUNTIME_DIR`
void require_private(const std::string& path);

/// A Unix socket there that is nobody's yet.
Address unused_socket(const Environment& environment);
Address unused_socket();  // by this process's environment

}  // namespace orrery::executor
