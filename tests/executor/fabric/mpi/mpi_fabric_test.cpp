// Ranks of MPI are processes: one test starts this program again under mpirun.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "executor/errors.hpp"
#include "executor/launch/environment.hpp"
#include "executor/module/mpi_module.hpp"
#include "tests/executor/fabric/tcp/conformance.hpp"

namespace orrery::executor {

namespace {

struct Answer {
  int exit_code = -1;
  std::string text;
};

/// A test of this program on ranks of mpirun.
Answer under_mpirun(int ranks, const std::string& tag) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string line =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_hwloc_base_binding_policy=none "
      "ASAN_OPTIONS=detect_leaks=0 "  // what Open MPI never gives back
      "timeout 60 "
      "mpirun --oversubscribe -n " +
      std::to_string(ranks) + " " + program + " \"" + tag + "\" 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Answer answer;
  char part[4096];
  while (const std::size_t size = std::fread(part, 1, sizeof part, pipe)) {
    answer.text.append(part, size);
  }
  const int status = pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return answer;
}

bool mpi_is_here() {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) {
    WARN("skipped: there is no mpirun");
    return false;
  }
  if (!mpi_module_loads()) {
    WARN("skipped: liborrery_mpi.so was not built");
    return false;
  }
  return true;
}

/// The cases that mpirun is to run are passed over when they are met alone.
bool is_rank_of_mpi() {
  return placement(environment()).launcher == Launcher::open_mpi;
}

}  // namespace

TEST_CASE("MPI keeps a fabric's contract") {
  if (!mpi_is_here()) return;
  const Answer answer = under_mpirun(3, "[.mpi-contract]");
  INFO(answer.text);
  CHECK(answer.exit_code == 0);
}

TEST_CASE("A rank of MPI that keeps a fabric's contract", "[.mpi-contract]") {
  if (!is_rank_of_mpi()) return;
  const auto fabric = mpi_fabric();
  REQUIRE(fabric->ranks() == placement(environment()).ranks);
  REQUIRE(fabric->rank() == placement(environment()).rank);
  CHECK(broken_promises(*fabric) == std::vector<std::string>{});
}

TEST_CASE("An abort ends a wait of MPI with its reason") {
  if (!mpi_is_here()) return;
  const Answer answer = under_mpirun(2, "[.mpi-abort]");
  INFO(answer.text);
  CHECK(answer.text.find("rank 1 waits no more: the disk is full") != std::string::npos);
}

TEST_CASE("A rank of MPI that is aborted", "[.mpi-abort]") {
  if (!is_rank_of_mpi()) return;
  const auto fabric = mpi_fabric();
  const GroupId group = fabric->make_group(std::vector<int>{0, 1});
  std::byte buffer[4]{};
  if (fabric->rank() == 1) {
    std::thread other{[&] {
      std::this_thread::sleep_for(std::chrono::milliseconds{100});
      fabric->abort("the disk is full");
    }};
    try {
      fabric->wait(fabric->receive({.group = group, .peer = 0, .buffer = buffer, .bytes = 4}));
    } catch (const RunFailure& failure) {
      std::printf("rank 1 waits no more: %s\n", failure.what());
      std::fflush(stdout);
    }
    other.join();
  } else {
    std::this_thread::sleep_for(std::chrono::seconds{1});
  }
  std::_Exit(71);  // as a run that failed ends: without MPI_Finalize
}

}  // namespace orrery::executor
