// What a script may rely on: exit codes, and stdout, when something cannot be read or written.
#include <vector>

#include "sim/input/gunzip.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// `orrery ARGUMENTS` with stdout elsewhere; what stderr said, and the exit code.
Ran with_stdout(const std::string& where, const std::string& arguments) {
  const Scratch scratch;
  const std::string line =
      std::string{ORRERY_COMMAND} + " " + arguments + " " + where + " 2>" + scratch.path("error");
  const int status = std::system(line.c_str());
  Ran ran;
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ran.error = scratch.read("error");
  return ran;
}

/// One of every command and of every form of its answer.
std::vector<std::string> commands(const Scratch& scratch) {
  const std::string kernels = scratch.write("kernels.csv",
                                            "id,source,kernel,gpu,dtype,m,n,k_or_seq,time_us\n"
                                            "a,own,gemm,h100-sxm,bf16,4096,4096,4096,230\n");
  const std::string log = scratch.write(
      "nccl.log",
      "# nccl-tests version 2.18.2 nccl-headers=23007 nccl-library=23007\n"
      "# Collective test starting: all_reduce_perf\n"
      "#  Rank  0 Group  0 Pid   1 on node-a device  0 [0000:1b:00] NVIDIA H100 80GB HBM3\n"
      "#  Rank  1 Group  0 Pid   2 on node-a device  1 [0000:2b:00] NVIDIA H100 80GB HBM3\n"
      "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1024 256 float sum -1 20.00 0.05 0.05 0 21.00 0.05 0.05 0\n");
  const std::string trace = scratch.path("trace.json");
  REQUIRE(orrery("simulate llama3-8b-8-h100 --trace " + trace).exit_code == 0);
  return {"--version",
          "--help",
          "simulate llama3-8b-8-h100",
          "simulate llama3-8b-8-h100 --explain",
          "simulate llama3-8b-8-h100 --json",
          "show gpus",
          "show gpus h100 --json",
          "show scenario llama3-8b-8-h100",
          "show program llama3-8b-8-h100",
          "validate " + kernels,
          "validate " + kernels + " --json",
          "compare " + trace + " " + trace,
          "compare " + trace + " " + trace + " --json",
          "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 8 --seq-len 128 --top 1",
          "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 8 --seq-len 128 --json",
          "calibrate --import " + log,
          "calibrate --import " + log + " --json",
          "fit curves --from " + kernels,
          "execute gpt-1rank --steps 1",
          "execute gpt-dp2 --steps 1 --json"};
}

}  // namespace

TEST_CASE("Every command whose stdout is full exits 74 with one line") {
  const Scratch scratch;
  for (const std::string& each : commands(scratch)) {
    const Ran ran = with_stdout(">/dev/full", each);
    INFO(each << "\n" << ran.error);
    CHECK(ran.exit_code == 74);
    const std::string line = "standard output: cannot be written: No space left on device";
    CHECK(ran.error.find(line) != std::string::npos);
    CHECK(ran.error.find(line, ran.error.find(line) + 1) == std::string::npos);
    if (each.rfind("execute", 0) != 0) CHECK(ran.error == line + "\n");
  }
}

TEST_CASE("A closed stdout is an output that cannot be written, and no trace takes its place") {
  const Scratch scratch;
  const std::string trace = scratch.path("trace.json");
  const Ran ran = with_stdout(">&-", "simulate llama3-8b-8-h100 --trace " + trace);
  CHECK(ran.exit_code == 74);
  const std::string line = "standard output: cannot be written: Bad file descriptor\n";
  CHECK(ran.error.rfind("wrote the trace " + trace, 0) == 0);
  CHECK(ran.error.find('\n') + 1 + line.size() == ran.error.size());
  CHECK(ran.error.ends_with(line));
  CHECK(parsed(scratch.read("trace.json")).contains("traceEvents"));
}

TEST_CASE("A trace is packed if its name ends so, and on standard output alone there") {
  const Scratch scratch;
  const std::string plain = scratch.path("t.json"), packed = scratch.path("t.json.gz");
  const Ran ran = orrery("simulate llama3-8b-8-h100 --trace " + plain);
  CHECK(ran.error.rfind("wrote the trace " + plain + ", ", 0) == 0);
  const Ran gzip = orrery("simulate llama3-8b-8-h100 --trace " + packed);
  CHECK(gzip.error.rfind("wrote the trace " + packed + ", ", 0) == 0);
  CHECK(gzip.out == ran.out);
  const std::string bytes = scratch.read("t.json.gz"), text = scratch.read("t.json");
  CHECK(gunzipped(bytes, "t.json.gz", std::size_t{64} << 20) == text);
  CHECK(bytes.size() < text.size() / 2);
  CHECK(orrery("compare " + packed + " " + plain).out ==
        orrery("compare " + plain + " " + plain).out);

  const Ran piped = orrery("simulate llama3-8b-8-h100 --trace -");
  CHECK(piped.exit_code == 0);
  CHECK(piped.out == text);
  CHECK(piped.error.rfind("wrote the trace to standard output, ", 0) == 0);
  CHECK(piped.error.substr(piped.error.find('\n') + 1) == ran.out);
  CHECK_FALSE(std::filesystem::exists("-"));
  CHECK(refused_line("execute gpt-1rank --steps 1 --trace -")
            .rfind("--trace: expected a file; standard output is the report's", 0) == 0);
  const Ran both = orrery("simulate llama3-8b-8-h100 --trace - --json");
  CHECK(both.exit_code == 2);
}

TEST_CASE("A file that cannot be written is exit code 74, and stdout stays empty") {
  const auto refused = [](const std::string& arguments, const std::string& line) {
    const Ran ran = orrery(arguments);
    INFO(arguments << "\n" << ran.error);
    CHECK(ran.exit_code == 74);
    CHECK(ran.out.empty());
    CHECK(ran.error == line + "\n");
  };
  const std::string missing = ": cannot be written: No such file or directory";
  refused("simulate llama3-8b-8-h100 --trace /nowhere/all.json", "/nowhere/all.json" + missing);
  refused("simulate llama3-8b-8-h100 --trace /dev/full",
          "/dev/full: cannot be written: No space left on device");
  refused("calibrate --budget 1s --out /nowhere/all.json", "/nowhere/all.json" + missing);
  const Ran logged = orrery("execute gpt-dp2 --ranks 1 --steps 1 --log /dev/full --json");
  CHECK(logged.exit_code == 74);
  CHECK(logged.error.find("/dev/full: cannot be written: No space left on device "
                          "(a file cannot be written or read)\n") != std::string::npos);
}

TEST_CASE("With --json a failure is one document on stdout") {
  const auto error_of = [](const std::string& arguments, int exit_code) {
    const Ran ran = orrery(arguments);
    INFO(arguments << "\n" << ran.out << ran.error);
    CHECK(ran.exit_code == exit_code);
    const Json json = parsed(ran.out);
    CHECK(json.size() == 1);
    CHECK(json["error"]["code"] == exit_code);
    return json["error"];
  };
  const Json wrong =
      error_of("simulate gpt3-175b-1024-a100 --set /cluster/fabric/bandwidth=800 --json", 2);
  CHECK(wrong == Json::parse(R"({"file": "gpt3-175b-1024-a100",
    "pointer": "/cluster/fabric/bandwidth", "found": "800",
    "accepted": "a rate such as \"450 GB/s\"", "code": 2})"));
  CHECK(error_of("simulate nowhere.json --json", 2)["file"] == "nowhere.json");
  CHECK(error_of("plan --json", 2)["file"].is_null());
  CHECK(error_of("simulate gpt3-175b-1024-a100 --json --jsn", 2)["pointer"].is_null());
  const Json days = error_of(
      "simulate --model gpt2 --cluster dgx-a100-80gb --json --set "
      "/cluster/node/gpu/memory_bandwidth="
      "'10 kB/s'",
      2);
  CHECK(days["pointer"] == "/plan");
  CHECK(days["file"].is_null());
  const Json missing = error_of("execute gpt-dp2 --steps 1 --data /nowhere --json", 2);
  CHECK(missing["file"] == "/nowhere");
  CHECK(missing["found"] == "cannot be read: No such file or directory");
  const Json full = error_of("simulate llama3-8b-8-h100 --json --trace /dev/full", 74);
  CHECK(full["file"] == "/dev/full");
  CHECK(full["found"] == "cannot be written: No space left on device");
}

TEST_CASE("Of logs of which one is refused nothing is printed") {
  const Scratch scratch;
  const std::string good = scratch.write(
      "good.txt", "# OSU MPI-CUDA Bandwidth Test v7.5\n# Size Bandwidth (MB/s)\n8 7.61\n");
  CHECK(orrery("calibrate --import " + good).exit_code == 0);
  const std::string bad = scratch.write("bad.txt", "who said this\n");
  refused_line("calibrate --import " + good + " " + bad);
}

}  // namespace orrery::scenarios
