// Checkpoints that are whole, in folders that cannot be read at the moment.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "executor/checkpoint/verify.hpp"
#include "file_calls.hpp"
#include "small_state.hpp"

namespace orrery::executor {

namespace {

/// Steps 10 and 20.
struct TwoCheckpoints {
  TwoCheckpoints() {
    Held held = whole();
    for (const int version : {1, 2}) {
      held.fill(version);
      checkpoints.save(held.state(), version * 10);
    }
  }
  std::string newest() const {
    std::string found;
    const std::string refused =
        refusal([&] { found = std::to_string(checkpoints.newest().value().steps); });
    return found + refused;
  }
  std::string restored() const {
    Held held = whole();
    return refusal([&] { checkpoints.restore(held.state(), 20); });
  }
  std::string step() const { return folder.path + "/step-0000000020"; }

  Folder folder;
  Checkpoints checkpoints{{.folder = folder.path}, small_run()};
};

/// What `call` returns in a process of another user, for whom permissions hold.
std::string as_another_user(const std::function<std::string()>& call) {
  constexpr uid_t nobody = 65534;
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string said = "not another user";
    if (geteuid() != 0 || setuid(nobody) == 0) said = call();
    _exit(write(pipes[1], said.data(), said.size()) < 0 ? 1 : 0);
  }
  close(pipes[1]);
  std::string said(1000, '\0');
  const ssize_t size = read(pipes[0], said.data(), said.size());
  close(pipes[0]);
  waitpid(child, nullptr, 0);
  said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return said;
}

}  // namespace

TEST_CASE("A folder that cannot be listed for a moment is not a folder without checkpoints") {
  const TwoCheckpoints two;
  const auto found = [&](const char* call, int reason) {
    const FailingOnce failing{call, reason};
    const std::string said = two.newest();
    CHECK(failing.failed());
    return said;
  };
  const std::string place = "run failure: " + two.folder.path;
  CHECK(found("readdir", EIO) == place + ": cannot be read: Input/output error");
  CHECK(found("readdir", ESTALE) == place + ": cannot be read: Stale file handle");
  CHECK(two.newest() == "20");
  const Checkpoints none{{.folder = two.folder.path + "/none"}, small_run()};
  CHECK_FALSE(none.newest().has_value());
}

TEST_CASE(
    "A checkpoint that cannot be opened for a moment is not damaged, and none is passed over") {
  const TwoCheckpoints two;
  for (const int reason : {EMFILE, EACCES, EIO, ESTALE}) {
    const FailingOnce failing{"open", reason};
    CHECK(two.newest() == "run failure: " + two.step() + "/manifest.json: cannot be read: " +
                              std::generic_category().message(reason));
  }
  CHECK(two.newest() == "20");
}

TEST_CASE("Where no more descriptors are left a run ends, and names the folder") {
  const TwoCheckpoints two;
  const auto said = as_another_user([&] {
    const int next = dup(0);
    const rlimit none{static_cast<rlim_t>(next), static_cast<rlim_t>(next)};
    close(next);
    setrlimit(RLIMIT_NOFILE, &none);
    return two.newest();
  });
  CHECK(said == "run failure: " + two.folder.path + ": cannot be read: Too many open files");
}

TEST_CASE("What this user may not enter or read is said, with the name of the folder or file") {
  const TwoCheckpoints two;
  const auto said = [&](const std::string& path, fs::perms rights,
                        const std::function<std::string()>& call) {
    const fs::perms before = fs::status(path).permissions();
    fs::permissions(path, rights);
    const std::string found = as_another_user(call);
    fs::permissions(path, before);
    return found;
  };
  fs::permissions(two.folder.path, fs::perms{0755});  // made for its owner alone
  const std::string denied = ": cannot be read: Permission denied";
  const std::string manifest = "run failure: " + two.step() + "/manifest.json";
  CHECK(said(two.step(), fs::perms{0}, [&] { return two.newest(); }) == manifest + denied);
  CHECK(said(two.step(), fs::perms{0}, [&] {
          return refusal([&] { verify_checkpoints(two.folder.path); });
        }) == manifest + denied);
  for (const char* file : {"/manifest.json", "/part-00000.json", "/part-00000.bin"}) {
    const std::string path = two.step() + file;
    CHECK(said(path, fs::perms{0}, [&] { return two.newest(); }) ==
          "run failure: " + path + denied);
    CHECK(said(path, fs::perms{0}, [&] { return two.restored(); }) ==
          "run failure: " + path + denied);
  }
  CHECK(as_another_user([&] { return two.newest() + two.restored(); }) == "20");
}

}  // namespace orrery::executor
