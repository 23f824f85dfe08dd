#pragma once
// How a wait on a socket ends before its time: what interrupts the run makes a descriptor readable
// (the pipe of a signal's handler), and every wait of this thread looks at it too.

namespace orrery::executor {

/// Waits of this thread end once `descriptor` can be read, for as long as this is there.
/// Errors of those waits  RunFailure{interrupted}: `interrupted while ranks meet`
class Interruptible {
 public:
  explicit Interruptible(int descriptor);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  int before_;
};

/// Of this thread; -1: nothing ends its waits, which poll(2) takes as it is.
int interruption();
void refuse_if_interrupted();

}  // namespace orrery::executor
