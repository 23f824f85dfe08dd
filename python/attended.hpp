#pragma once
// A long call without the interpreter's lock: its progress reaches Python, and Ctrl-C reaches it.

#include <pybind11/pybind11.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

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

/// JSON, the report for people, and whether nothing stopped it before its end.
using Answered = std::tuple<std::string, std::string, bool>;

/// work(progress) without the interpreter's lock, while `progress(done, of)` is called in Python.
template <class Work>
Answered attended(const pybind11::object& progress, const Work& work) {
  Attended attended;
  const auto counted = [&](std::size_t done, std::size_t of) {
    return attended.attend([&] {
      if (!progress.is_none()) progress(done, of);
    });
  };
  Answered answer = [&] {
    const pybind11::gil_scoped_release unlocked;
    return work(counted);
  }();
  if (attended.interrupted()) std::get<bool>(answer) = false;
  return answer;
}

}  // namespace orrery::scenarios
