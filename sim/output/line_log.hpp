#pragma once
// A log that others read while it grows: line by line at the end of a file, each whole or not
// there.

#include <string>
#include <string_view>

namespace orrery {

/// Errors of all calls  OutputError: `PATH: cannot be written: No space left on device`
class LineLog {
 public:
  /// Goes on at the end of what is there.
  explicit LineLog(std::string path);
  ~LineLog();
  LineLog(const LineLog&) = delete;
  LineLog& operator=(const LineLog&) = delete;

  /// `line` without its end.
  void add(std::string_view line);

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace orrery
