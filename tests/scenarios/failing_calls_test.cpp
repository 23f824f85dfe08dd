// Every call that puts an answer on the disk, failing in turn: the command says so by its exit
// code, and what it leaves is whole or what was there before.
#include <map>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// `orrery ARGUMENTS` whose `which`-th call of that name fails as on a full disk.
Ran with_failing(const std::string& call, int which, const std::string& arguments) {
  const Scratch scratch;
  const std::string line = "strace -f -qq -o /dev/null -e trace=" + call + " -e inject=" + call +
                           ":error=ENOSPC:when=" + std::to_string(which) + " " + ORRERY_COMMAND +
                           " " + arguments + " >" + scratch.path("out") + " 2>" +
                           scratch.path("error");
  const int status = std::system(line.c_str());
  Ran ran;
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ran.out = scratch.read("out");
  ran.error = scratch.read("error");
  return ran;
}

/// Files below a folder, with what is in them.
std::map<std::string, std::string> files_in(const Scratch& scratch, const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& each : std::filesystem::recursive_directory_iterator{scratch.path(folder)}) {
    if (!each.is_regular_file()) continue;
    const std::string name = std::filesystem::relative(each.path(), scratch.path(folder)).string();
    files[name] = scratch.read(folder + "/" + name);
  }
  return files;
}

/// Fails each call of a command that writes into the folder `out` of `scratch`, until none is left
/// to fail. Returns how many there were.
int fail_each(const Scratch& scratch, const std::string& arguments) {
  const std::string folder = scratch.path("out");
  std::filesystem::create_directory(folder);
  const Ran good = orrery(arguments);
  INFO(arguments << "\n" << good.error);
  REQUIRE(good.exit_code == 0);
  const auto whole = files_in(scratch, "out");
  REQUIRE(!whole.empty());
  int failed = 0;
  for (const char* call : {"write", "fsync", "rename"}) {
    constexpr int most = 100;
    for (int which = 1; which < most; ++which) {
      std::filesystem::remove_all(folder);
      std::filesystem::create_directory(folder);
      const Ran ran = with_failing(call, which, arguments);
      INFO(call << " " << which << "\n" << ran.error);
      for (const auto& [name, text] : files_in(scratch, "out")) {
        INFO(name);
        REQUIRE(whole.count(name) == 1);  // nothing half written is left
        CHECK(text == whole.at(name));
      }
      if (ran.exit_code == 0) {
        CHECK(ran.out == good.out);
        CHECK(files_in(scratch, "out") == whole);
        break;
      }
      ++failed;
      CHECK(ran.exit_code == 74);
      CHECK(ran.error.find("cannot be written: No space left on device") != std::string::npos);
    }
  }
  return failed;
}

}  // namespace

TEST_CASE("A simulation whose trace or answer cannot be written exits 74 at every call") {
  const Scratch scratch;
  // One write of the trace and one of the answer; the file's fsync and its folder's; one rename.
  CHECK(fail_each(scratch, "simulate llama3-8b-8-h100 --json --trace " +
                               scratch.path("out/trace.json")) >= 5);
}

TEST_CASE("Curves and a page that cannot be written exit 74 at every call") {
  const Scratch scratch;
  const std::string kernels = scratch.write(
      "kernels.csv",
      "id,source,kernel,gpu,dtype,m,n,k_or_seq,time_us\na,own,gemm,h100-sxm,bf16,4096,4096,4096,"
      "230\n"
      "b,own,gemm,h100-sxm,bf16,8192,8192,8192,1700\nc,own,gemm,h100-sxm,bf16,2048,2048,2048,40\n");
  CHECK(fail_each(scratch, "fit curves --from " + kernels + " --out " + scratch.path("out")) >= 5);
}

}  // namespace orrery::scenarios
