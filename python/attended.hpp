#pragma once
// Runs a long call without the GIL, while its progress reaches Python and Ctrl-C interrupts it.

#include <pybind11/pybind11.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

namespace orrery::scenarios {

/// Checks for signals and keeps the first Python exception raised during a call that runs without
/// the GIL. Constructed and destroyed with the GIL held.
class Attended {
 public:
  /// Takes the GIL, checks for signals and runs `report`, unless an exception was raised before.
  /// Returns false if this call raised one. Must not be called by two threads at once.
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

  /// Call with the GIL held, after the work: true after Ctrl-C; any other exception is rethrown
  /// here.
  bool interrupted() {
    if (!raised_) return false;
    if (raised_->matches(PyExc_KeyboardInterrupt)) return true;
    throw *raised_;
  }

 private:
  std::optional<pybind11::error_already_set> raised_;
};

/// The answer as JSON, its text report, and whether it is complete (false if it was interrupted).
using Answered = std::tuple<std::string, std::string, bool>;

/// Runs work(progress) without the GIL, while `progress(done, of)` is called in Python.
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
