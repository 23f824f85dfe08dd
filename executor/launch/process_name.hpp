#pragma once
// Names ranks in process lists: `orrery rank 3` before the arguments.

namespace orrery::executor {

/// Names the calling thread for `top` and `/proc/PID/comm` ("orrery rank 3", the system keeps 15
/// characters: from rank 1000 on "orrery r1000").
void name_thread(int rank);

/// The same, and what `ps` prints of the process: its first word becomes `orrery rank 3`, and its
/// arguments follow, cut off at the end of the memory that the system gave them. `argv` must not be
/// read afterwards. Where the system does not say where that memory is, it is left unchanged.
void name_process(int rank);

}  // namespace orrery::executor
