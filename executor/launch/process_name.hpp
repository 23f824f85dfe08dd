#pragma once
// What process lists show of a rank: `orrery rank 3` before its arguments.

namespace orrery::executor {

/// Names the calling thread for `top` and `/proc/PID/comm` ("orrery rank 3", the system keeps 15
/// characters: from rank 1000 on "orrery r1000").
void name_thread(int rank);

/// The same, and what `ps` prints of the process: its first word becomes `orrery rank 3`, its
/// arguments follow, cut where they reach beyond the memory that they were given in. `argv` must
/// not be read afterwards. Where the system does not say where they lie, they stay.
void name_process(int rank);

}  // namespace orrery::executor
