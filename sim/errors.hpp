#pragma once
// The two ways to fail by exception. A plan that does not fit is neither: it is an answer.

#include <stdexcept>
#include <string>

namespace orrery {

/// The user's mistake. `what()` is one line: place, what was expected, what was found.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// `place` is `file:/json/pointer`, `file:line` or the name of a flag.
  InputError(const std::string& place, const std::string& problem)
      : std::runtime_error(place + ": " + problem) {}
};

/// Our mistake, checked in release builds too.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Refuses to go on when one of our own promises is broken.
inline void ensure(bool promise, const char* broken) {
  if (!promise) throw ContractError{broken};
}

}  // namespace orrery
