#pragma once
// The calls that put a file on the disk, recorded or made to fail: write, fsync, close and rename
// of the C library are this test program's own, which pass on to the system.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::executor {

/// One call, on which path; of a rename also where to.
struct FileCall {
  std::string name, path, to{};
};

/// While it lives, calls of this thread on paths below `folder` are kept, and one of them may fail.
class FileCalls {
 public:
  /// `failing`  from 0; that call does nothing and fails with `reason`, as in errno
  explicit FileCalls(std::string folder, std::optional<std::size_t> failing = {}, int reason = 0);
  ~FileCalls();
  FileCalls(const FileCalls&) = delete;
  FileCalls& operator=(const FileCalls&) = delete;

  const std::vector<FileCall>& all() const { return calls_; }
  bool failed() const { return failed_; }

  /// 0, or why this call is to fail.
  int take(FileCall call);

 private:
  std::string folder_;
  std::optional<std::size_t> failing_;
  int reason_;
  bool failed_ = false;
  std::vector<FileCall> calls_;
};

/// While it lives, one call of this thread fails: the next of its name, "open" or "readdir".
class FailingOnce {
 public:
  FailingOnce(std::string name, int reason);
  ~FailingOnce();
  FailingOnce(const FailingOnce&) = delete;
  FailingOnce& operator=(const FailingOnce&) = delete;

  /// 0, or why this call is to fail.
  int take(std::string_view name);
  bool failed() const { return reason_ == 0; }

 private:
  std::string name_;
  int reason_;
};

}  // namespace orrery::executor
