#pragma once
// An append-only log that others may read while it grows: a line is written whole or not at all.

#include <functional>
#include <string>
#include <string_view>

namespace orrery {

/// Errors of all calls  OutputError: `PATH: cannot be written: No space left on device`
class LineLog {
 public:
  /// Appends to the file if it exists.
  explicit LineLog(std::string path);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  /// `line` has no newline.
  void add(std::string_view line);
  /// Removes the lines at the end for which `drop` is true, and a last line without its newline,
  /// which a process was killed within. Not for devices and pipes.
  void cut_back(const std::function<bool(std::string_view line)>& drop);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace orrery
