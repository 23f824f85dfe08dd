#pragma once
// Ends waits on sockets early when the run is interrupted: a request to end makes a descriptor
// readable (StopRequests::descriptor), and every wait of this thread polls that descriptor, too.

namespace orrery::executor {

/// While it exists, waits of this thread end once `descriptor` can be read.
/// Errors of those waits  RunFailure{interrupted}: `interrupted while ranks connect`
class Interruptible {
 public:
  explicit Interruptible(int descriptor);
  ~Interruptible();
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  int before_;
};

/// The descriptor that ends this thread's waits; -1: none, which poll(2) ignores.
int interruption();
void refuse_if_interrupted();

}  // namespace orrery::executor
