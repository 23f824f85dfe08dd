#include "executor/launch/process_name.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <iterator>
#include <string>

#include "executor/launch/spawn.hpp"

namespace orrery::executor {

namespace {

std::string content_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

/// What process lists show of a process that calls itself rank `rank`.
struct Shown {
  std::string words, thread;
};
Shown shown_as(int rank) {
  int ready[2], done[2];
  REQUIRE(pipe(ready) == 0);
  REQUIRE(pipe(done) == 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    name_process(rank);
    const bool written = write(ready[1], "x", 1) == 1 && read(done[0], &byte, 1) == 1;
    _exit(written ? 0 : 1);
  }
  REQUIRE(read(ready[0], &byte, 1) == 1);
  const std::string process = "/proc/" + std::to_string(child);
  const Shown shown{content_of(process + "/cmdline"), content_of(process + "/comm")};
  REQUIRE(write(done[1], "x", 1) == 1);
  int status = 0;
  waitpid(child, &status, 0);
  for (const int each : {ready[0], ready[1], done[0], done[1]}) close(each);
  return shown;
}

}  // namespace

TEST_CASE("Process lists show which rank a process is, and its arguments") {
  const std::string before = content_of("/proc/self/cmdline");
  const Shown shown = shown_as(3);
  CHECK(shown.thread == "orrery rank 3\n");
  std::string expected = std::string{"orrery rank 3"} + '\0';
  for (const std::string& each : own_arguments()) expected += each + '\0';
  expected.resize(before.size(), '\0');
  expected.back() = '\0';
  CHECK(shown.words == expected);
  CHECK(shown_as(1000).thread == "orrery r1000\n");
  CHECK(content_of("/proc/self/cmdline") == before);
}

}  // namespace orrery::executor
