#pragma once
// What a folder of checkpoints has. A file system that cannot tell at the moment (a network file
// system after a failover, no descriptors left) is not an empty folder: a run that took it for one
// would begin at step 0, and in time remove the checkpoints that it did not see.

#include <string>
#include <system_error>
#include <vector>

#include "executor/errors.hpp"

namespace orrery::executor {

/// Exit code 74: `PATH: cannot be read: Stale file handle`
RunFailure unreadable(const std::string& path, std::error_code reason);

/// Whether something is at `path`. Errors  RunFailure, as above
bool is_there(const std::string& path);
/// Names in a folder, in the file system's order; none if the folder is absent. Errors  RunFailure
std::vector<std::string> names_in(const std::string& folder);

}  // namespace orrery::executor
