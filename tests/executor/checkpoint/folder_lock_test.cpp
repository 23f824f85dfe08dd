#include "executor/checkpoint/folder_lock.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "small_state.hpp"

namespace orrery::executor {

TEST_CASE("A folder of checkpoints has one run at a time, which is named to the next") {
  const Folder folder;
  const std::string runs = folder.path + "/runs/first";
  {
    const FolderLock held{runs};
    char host[256] = "";
    gethostname(host, sizeof host - 1);
    const std::string expected = runs + ": another run writes its checkpoints there (process " +
                                 std::to_string(getpid()) + " of " + host +
                                 "): wait until it ends, or use another folder";
    CHECK_THROWS_WITH(FolderLock{runs}, expected);
  }
  CHECK_NOTHROW(FolderLock{runs});
}

TEST_CASE("A run that is killed gives its folder back") {
  const Folder folder;
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock held{folder.path};
    if (write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  REQUIRE(read(ready[0], &byte, 1) == 1);
  CHECK_THROWS_AS(FolderLock{folder.path}, InputError);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK_NOTHROW(FolderLock{folder.path});
  close(ready[0]);
  close(ready[1]);
}

TEST_CASE("A folder is tried by writing into it, without a trace") {
  const Folder folder;
  try_folder(folder.path + "/new", 3);
  CHECK(std::filesystem::is_empty(folder.path + "/new"));
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10, 10};  // bytes, as on a full disk
    setrlimit(RLIMIT_FSIZE, &limit);
    std::string said;
    try {
      try_folder(folder.path, 3);
    } catch (const OutputError& error) {
      said = error.what();
    }
    _exit(said == folder.path + "/tried-00003: cannot be written: File too large" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

}  // namespace orrery::executor
