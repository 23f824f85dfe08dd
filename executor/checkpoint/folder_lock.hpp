#pragma once
// Locks a folder of checkpoints, so that one run at a time writes there: two would remove each
// other's checkpoints.

#include <string>

namespace orrery::executor {

/// Holds the lock `FOLDER/lock` while it exists; a run that dies releases it. On a file system
/// without locks it holds nothing.
/// Errors  InputError `FOLDER: another run writes its checkpoints there (process 1234 of node1):
///         wait until it ends, or use another folder`; OutputError: nothing can be written there
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// Writes a few bytes into a folder, which is made if it is absent, and removes them, so that a
/// folder that cannot be written is found before the first step. Called while rank 0 has the lock.
/// Errors  OutputError `FOLDER/tried-00003: cannot be written: No space left on device`
void try_folder(const std::string& folder, int rank);

}  // namespace orrery::executor
