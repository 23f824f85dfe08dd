#pragma once
// Durable, atomic file writes: even after a power cut the file is complete or unchanged. It is
// written next to the target, flushed to disk and renamed, and then the folder is flushed.

#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace orrery {

/// The result of a system call that is repeated as long as a signal interrupts it, as happens on
/// network file systems that are mounted `intr`. Not for close, which is not to be repeated.
template <class Call>
auto through_signals(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

/// Called with the name of each finished step of a write; a crash test kills the process there.
using StepDone = std::function<void(std::string_view)>;

/// A new file, open for reading and writing, under a name that nothing had.
struct NewFile {
  std::string path{};
  int descriptor = -1;
};
/// Creates one next to `target`, whose name it is to take later: `.step.json.5c0ffee5c0ffee42.tmp`.
/// `mode` is subject to the umask. Errors  OutputError, of `target`
NewFile new_file_for(const std::string& target, unsigned mode);

/// A file being written. Destroyed before `commit`, it leaves the existing file at `path`
/// unchanged. The new file has the owner, group and permissions of the one that it replaces, as far
/// as the user may give them; another hard link to the old file keeps the old content. A device or
/// a pipe is written directly: it cannot be replaced by a rename.
/// Errors of all calls  OutputError: `PATH: cannot be written: No space left on device`
class DurableFile {
 public:
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Flushes, renames, flushes the folder.
  void commit(const StepDone& step = {});

 private:
  std::string path_;       // as the user gave it
  std::string target_;     // with symbolic links resolved
  std::string temporary_;  // empty: `path_` itself is written
  int descriptor_ = -1;
};

void write_durably(const std::string& path, std::string_view text, const StepDone& step = {});
/// Checks that `path` can be written, without leaving a file. Errors: OutputError
void require_writable(const std::string& path);
/// Creates the folder and those above it. Errors: OutputError
void make_folder(const std::string& path);
/// Flushes a folder to disk: files created, renamed or removed in it survive a power cut.
void flush_folder(const std::string& folder);

/// Writes all of `text`, through signals and short writes. Returns false on failure, with errno
/// set.
bool write_all(int descriptor, std::string_view text);

}  // namespace orrery
