#include "sim/output/line_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <utility>

#include "sim/errors.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery {

LineLog::LineLog(std::string path) : path_{std::move(path)} {
  constexpr mode_t new_file = 0666;
  descriptor_ = through_signals(
      [&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, new_file); });
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

void LineLog::cut_back(const std::function<bool(std::string_view line)>& drop) {
  struct stat found {};
  if (::fstat(descriptor_, &found) != 0 || !S_ISREG(found.st_mode)) return;
  std::ifstream file{path_, std::ios::binary};
  off_t at = 0, kept = 0;  // bytes: of the lines read, of those up to the last one that stays
  for (std::string line; std::getline(file, line) && !file.eof();) {
    at += static_cast<off_t>(line.size()) + 1;
    if (!drop(line)) kept = at;
  }
  if (kept < found.st_size && ::ftruncate(descriptor_, kept) != 0) throw OutputError{path_, errno};
}

}  // namespace orrery
