#pragma once
// The refusal of a user's file that cannot be read, with the reason.

#include <string>
#include <system_error>

#include "sim/errors.hpp"

namespace orrery {

/// `PATH: cannot be read: Permission denied`
class UnreadableFile : public InputError {
 public:
  UnreadableFile(const std::string& path, std::error_code reason)
      : InputError{path, "cannot be read: " + reason.message()}, reason_{reason} {}

  std::error_code reason() const { return reason_; }

 private:
  std::error_code reason_;
};

}  // namespace orrery
