#pragma once
// A long call without the interpreter's lock: its progress reaches Python, and Ctrl-C reaches it.

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>

namespace orrery::scenarios {

/// Made and destroyed with the interpreter's lock.
class Attended {
 public:
  /// Takes the interpreter's lock, looks for signals and runs `report`, which is left out once
  /// something has been raised. False: this call raised something. One thread at a time calls.
  bool attend(const std::function<void()>& report) {
    const pybind11::gil_scoped_acquire lock;
    try {
      if (PyErr_CheckSignals() != 0) throw pybind11::error_already_set{};
      if (!raised_) report();
      return true;
    } catch (pybind11::error_already_set& error) {
      if (!raised_) raised_.emplace(error);
      return false;
    }
  }

  /// With the lock, after the call: true after Ctrl-C; anything else that was raised is raised
  /// here.
  bool interrupted() {
    if (!raised_) return false;
    if (raised_->matches(PyExc_KeyboardInterrupt)) return true;
    throw *raised_;
  }

 private:
  std::optional<pybind11::error_already_set> raised_;
};

}  // namespace orrery::scenarios
