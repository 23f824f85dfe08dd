#pragma once
// Files that are there whole or not at all, also after a power cut: written next to the target,
// flushed to the disk, renamed, and the folder flushed.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace orrery {

/// Called after each step of a protocol with its name: a test dies there.
using StepDone = std::function<void(std::string_view)>;

/// Bytes on their way to `path`. Destroyed before `commit`, it leaves the file that was there.
/// A device or a pipe takes them as they come: there is nothing to rename.
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
  void open_temporary(unsigned mode);

  std::string path_;       // as the user says it
  std::string target_;     // where symbolic links lead
  std::string temporary_;  // empty: `path_` itself is written
  int descriptor_ = -1;
};

void write_durably(const std::string& path, std::string_view text, const StepDone& step = {});
/// Whether `path` could be written, found out without leaving a trace. Errors: OutputError
void require_writable(const std::string& path);
/// The folder and those above it. Errors: OutputError
void make_folder(const std::string& path);
/// What was created, renamed or removed in a folder survives from here on.
void flush_folder(const std::string& folder);

/// All of it, through signals and short counts; false: errno says why.
bool write_all(int descriptor, std::string_view text);

}  // namespace orrery
