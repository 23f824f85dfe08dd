#pragma once
// One run at a time writes a folder of checkpoints: two would remove each other's.

#include <string>

namespace orrery::executor {

/// Holds `FOLDER/lock` from here to its end; a run that dies gives it back. On a file system that
/// knows no locks it holds nothing.
/// Errors  InputError `FOLDER: another run writes its checkpoints there (process 1234 of node1):
/// wait
///         for its end, or name another folder`; OutputError: nothing can be written there
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Writes a few bytes into a folder, which is made where it is not there, and takes them away: what
/// cannot be saved is better known before the first step.
/// Errors  OutputError `FOLDER/tried-00003: cannot be written: No space left on device`
void try_folder(const std::string& folder, int rank);

}  // namespace orrery::executor
