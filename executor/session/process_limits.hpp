#pragma once
// Limits that the system sets a process (ulimit), checked before any rank starts. A run that lacks
// descriptors would wait for peers that cannot connect, and one that lacks addresses would spin:
// OpenBLAS asks for its buffer again for ever.

#include <cstdint>

#include "executor/session/session.hpp"

namespace orrery::executor {

/// Checks the limits of a process that has so many ranks of a run as threads; one that starts ranks
/// as processes gives them its limits.
/// Errors  RunFailure with code 72: `this process may have 8 files open (ulimit -n): expected 20 or
///         more for 2 ranks`, `this process may map 391 MiB (ulimit -v): expected 424 MiB or more`
void require_limits(const models::Question& question, const SessionOptions& options,
                    std::int64_t threads);

/// Checks the address space for any run at all, before a question is read. Errors  as above
void require_addresses();

}  // namespace orrery::executor
