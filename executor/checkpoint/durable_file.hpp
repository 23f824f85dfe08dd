#pragma once
// Files that are there whole or not at all, also after a power cut: written beside, flushed to the
// disk, renamed, and the folder flushed.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace orrery::executor {

/// Called after each step of a protocol with its name: a test dies there.
using StepDone = std::function<void(std::string_view)>;

/// Bytes on their way to `path`. Destroyed before `commit`, it leaves nothing.
/// Errors of all calls  RunFailure{local_failure}: `PATH: cannot be written: No space left on
/// device`
class DurableFile {
 public:
  explicit DurableFile(std::string path);
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(const void* data, std::size_t size);
  /// Flushes, renames, flushes the folder.
  void commit(const StepDone& step = {});

 private:
  std::string path_, temporary_;
  int descriptor_ = -1;
};

void write_durably(const std::string& path, std::string_view text, const StepDone& step = {});
/// What was created, renamed or removed in a folder survives from here on.
void flush_folder(const std::string& folder);

}  // namespace orrery::executor
