#include "sim/output/line_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "sim/errors.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery {

LineLog::LineLog(std::string path) : path_{std::move(path)} {
  constexpr mode_t new_file = 0666;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, new_file);
  if (descriptor_ < 0) throw OutputError{path_, errno};
}

LineLog::~LineLog() {
  ::close(descriptor_);
}

void LineLog::add(std::string_view line) {
  struct stat before {};
  const bool cut_back = ::fstat(descriptor_, &before) == 0 && S_ISREG(before.st_mode);
  if (write_all(descriptor_, std::string{line} + "\n")) return;
  const int reason = errno;
  // Removes a partly written line; the write error is reported even if this fails.
  if (cut_back && ::ftruncate(descriptor_, before.st_size) != 0) errno = reason;
  throw OutputError{path_, reason};
}

}  // namespace orrery
