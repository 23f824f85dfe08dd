#include "executor/session/process_limits.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "hardware/catalogue.hpp"
#include "tests/executor/checkpoint/small_state.hpp"
#include "tests/executor/world.hpp"

namespace orrery::executor {

namespace {

models::Question two_ranks() {
  Json cluster = hardware::expand_cluster(Document::from("cpu-host x 1", "cluster").root());
  cluster["node"]["gpus"] = 2;
  const Document document = Document::from(cluster, "cluster");
  models::Plan plan = plan_for(small_gpt(), small_plan());
  plan.data = 2;
  return {.model = small_gpt(),
          .plan = plan,
          .cluster = hardware::read_cluster(document.root()),
          .software = cpu_software(),
          .assumptions = {}};
}

/// What is said under a limit, in a process of its own.
std::string said_under(__rlimit_resource resource, rlim_t most) {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{most, most};
    setrlimit(resource, &limit);
    const std::string said = refusal([] { require_limits(two_ranks(), {}, 1); });
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

TEST_CASE("Too few descriptors or addresses are found before a run starts, with what it needs") {
  // Open here, 11 more for any run, 3 for each of two ranks; and the pipe of this test.
  const auto open = std::distance(std::filesystem::directory_iterator{"/proc/self/fd"},
                                  std::filesystem::directory_iterator{}) -
                    1 + 2;
  CHECK(said_under(RLIMIT_NOFILE, 14) ==
        "run failure: this process may have 14 files open (ulimit -n): expected " +
            std::to_string(open + 11 + 2 * 3) + " or more for 2 ranks");
  CHECK(said_under(RLIMIT_NOFILE, 200).empty());
  std::int64_t pages = 0;  // mapped here already; the run needs 340 MiB more
  std::ifstream{"/proc/self/statm"} >> pages;
  const auto mebibytes = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGE_SIZE) >> 20) + 200;
  const std::string addresses = said_under(RLIMIT_AS, mebibytes << 20);
  CHECK_THAT(addresses, Catch::Matchers::StartsWith("run failure: this process may map " +
                                                    std::to_string(mebibytes) +
                                                    " MiB (ulimit -v): expected "));
  CHECK(said_under(RLIMIT_AS, rlim_t{64} << 30) == "");
}

}  // namespace orrery::executor
