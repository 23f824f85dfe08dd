// calibrate/gpu_check.sh rehearsed without a GPU: by the command and a stand-in for the CUDA module
// whose GPUs are threads (tests/stand_in), on plans so small that threads run them, next to stubs
// of the programs that a machine with a GPU has.

#include <map>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// A folder with a build, tiny plans of the shipped ones' names, and stubs in front of the path.
class Machine {
 public:
  Machine() {
    namespace fs = std::filesystem;
    for (const char* folder : {"build/tests", "bin", "plans"}) {
      fs::create_directories(scratch_.path(folder));
    }
    fs::copy_file(ORRERY_COMMAND, scratch_.path("build/orrery"));
    const auto tests = fs::read_symlink("/proc/self/exe").parent_path();
    fs::copy_file(tests / "libcuda_stand_in.so", scratch_.path("build/liborrery_cuda.so"));
    program("build/tests/cuda_test", "echo 'All tests passed'");
    program("bin/nvidia-smi",
            "case \"$*\" in *name*) echo 'NVIDIA H200' ;; *driver*) echo 580.1 ;; *) echo 9.0 ;; "
            "esac");
    program("bin/compute-sanitizer", "shift 2; exec \"$@\"");
    program("bin/python3",
            "case \"$*\" in\n"
            "  *torch_step.py*)\n"
            "    for last; do :; done\n"
            "    echo '{\"variant\": \"'$last'\", \"median_step_time_s\": 2}' ;;\n"
            "  *'import torch'*) ;;\n"
            "  *) exec /usr/bin/env -S PATH=/usr/local/bin:/usr/bin:/bin python3 \"$@\" ;;\n"
            "esac");
    for (const char* plan : {"llama-1b-1gpu", "gpt-1gpu", "gpt-graphs-1gpu", "llama-1b-fp8-1gpu",
                             "gpt-nvfp4-1gpu", "gpt-dp2-1gpu"}) {
      shrink(plan);
    }
  }

  void program(const std::string& name, const std::string& body) const {
    scratch_.write(name, "#!/bin/sh\n" + body + "\n");
    std::filesystem::permissions(scratch_.path(name), std::filesystem::perms::owner_all);
  }

  Ran check(const std::string& arguments, const std::string& variables = "") const {
    const std::string line =
        "cd " + scratch_.path("") + " && PATH=" + scratch_.path("bin") + ":$PATH " +
        "ORRERY_CHECK_SCENARIOS=" + scratch_.path("plans") + " ORRERY_CHECK_STEPS=2 " +
        "ORRERY_CHECK_CALIBRATION='--budget 3s --widest 128' " + variables + " " +
        ORRERY_SOURCE "/calibrate/gpu_check.sh " + arguments + " >said 2>error";
    const int status = std::system(line.c_str());
    Ran ran;
    ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ran.out = read("said");
    ran.error = read("error");
    return ran;
  }

  std::string read(const std::string& name) const { return scratch_.read(name); }
  std::string path(const std::string& name) const { return scratch_.path(name); }
  const Scratch& scratch() const { return scratch_; }

 private:
  void shrink(const std::string& plan) const {
    const std::string file = std::string{ORRERY_SOURCE} + "/scenarios/local/" + plan + ".json";
    Json json = Json(Document::load(file).json());
    const bool llama = plan.find("llama") != std::string::npos;
    json["model"] = {{"format", "orrery-model"},
                     {"name", "toy"},
                     {"layers", 1},
                     {"family", llama ? "llama" : "gpt"},
                     {"hidden", 64},
                     {"heads", 2},
                     {"ffn_hidden", 128},
                     {"vocab", 128},
                     {"max_positions", 32}};
    json["plan"]["micro_batch"] = 1;
    json["plan"]["global_batch"] = 2;
    json["plan"]["seq_len"] = 32;
    scratch_.write("plans/" + plan + ".json", json.dump());
  }

  Scratch scratch_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Name, status, seconds and words of every step.
std::map<std::string, std::string> statuses(const Machine& machine) {
  std::map<std::string, std::string> found;
  std::istringstream lines{machine.read("out/steps.tsv")};
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    CHECK(found.emplace(line.substr(0, first), line.substr(first + 1, second - first - 1)).second);
  }
  return found;
}

}  // namespace

TEST_CASE("The GPU check runs all of its steps, and keeps a summary and one archive", "[heavy]") {
  const Machine machine;
  const Ran first = machine.check("--build build --out out --only llama,torch,cuda-test,calibrate");
  INFO(first.out << first.error);
  CHECK(first.exit_code == 0);
  CHECK(contains(machine.read("out/summary.md"), "| llama-own | "));
  CHECK(contains(machine.read("out/summary.md"), "| catalogue | "));
  std::filesystem::rename(machine.path("out/gpu-check.tar.gz"), machine.path("first.tar.gz"));
  std::filesystem::remove_all(machine.path("out"));

  // On another machine, with what the first run brought back.
  const Ran second = machine.check(
      "--build build --out out --from first.tar.gz --results mine --only "
      "compare,graphs,fp8,torch-compiled,blocks,sanitizer,dp2");
  INFO(second.out << second.error);
  CHECK(second.exit_code == 0);
  const std::string summary = machine.read("mine/summary.md");
  INFO(summary);
  CHECK(contains(summary, "NVIDIA H200, driver 580.1; orrery "));
  for (const char* run : {"llama-cudnn", "llama-own", "graphs", "fp8", "blocks", "dp2"}) {
    CHECK(contains(summary, std::string{"\n| "} + run + " | "));
    CHECK_FALSE(contains(summary, std::string{"\n| "} + run + " | not measured"));
  }
  CHECK(contains(summary, " | h200.json | "));
  // Predicted again by the profile, which measured our own attention.
  CHECK_FALSE(contains(summary.substr(summary.find("| llama-own |")), " | catalogue | "));
  CHECK(contains(summary, "\n| PyTorch, eager-fp32 | 2 | "));
  CHECK(contains(summary, "\n| PyTorch, compiled-fp32 | 2 | "));
  CHECK(contains(summary, "\n## compare-gpt-1gpu\n"));
  for (const auto& [step, status] : statuses(machine)) {
    INFO(step);
    CHECK(status == "0");
  }
  CHECK(std::system(("tar -tzf " + machine.path("mine/gpu-check.tar.gz") + " | grep -q h200.json")
                        .c_str()) == 0);
}

TEST_CASE("A step of the GPU check that fails is listed, and the rest goes on") {
  const Machine machine;
  machine.program("build/tests/cuda_test", "echo 'one case failed' && exit 3");
  machine.program("bin/compute-sanitizer", "echo clean");
  const Ran ran = machine.check("--build build --out out --only cuda-test,sanitizer");
  INFO(ran.out << ran.error);
  CHECK(ran.exit_code == 1);
  CHECK(ran.error == "gpu_check: failed: cuda-test \n");
  const std::string summary = machine.read("out/summary.md");
  CHECK(contains(summary, "\n| cuda-test | "));
  CHECK(contains(summary, " | failed (3): one case failed |"));
  CHECK(contains(summary, "| sanitizer | "));
  CHECK(statuses(machine).at("sanitizer") == "0");
}

TEST_CASE("A step of the GPU check is a program or a function, and is stopped at its limit") {
  const Machine machine;
  std::filesystem::create_directories(machine.path("out"));
  machine.scratch().write("steps.sh",
                          "set -euo pipefail\nout=" + machine.path("out") +
                              "\nends=100\ndeliver() { :; }\n"
                              "source " ORRERY_SOURCE
                              "/calibrate/gpu_check/steps.sh\n"
                              "greet() { echo \"hello $1\"; }\nexport -f greet\n"
                              "step function 5 greet you\n"
                              "step program 5 to $out/said sh -c 'echo out; echo error >&2'\n"
                              "step slow 1 sleep 30\n"
                              "ends=$SECONDS\nstep late 5 true\n");
  REQUIRE(std::system(("bash " + machine.path("steps.sh") + " >/dev/null").c_str()) == 0);
  CHECK(machine.read("out/function.log") == "hello you\n");
  CHECK(machine.read("out/said") == "out\n");
  CHECK(machine.read("out/program.log") == "error\n");
  const std::string steps = machine.read("out/steps.tsv");
  INFO(steps);
  CHECK(contains(steps, "\tstopped after 1 s\n"));
  CHECK(contains(steps, "late\t124\t0\tnot done: no time was left\n"));
}

TEST_CASE("The GPU check says what it cannot run without") {
  const Machine machine;
  const auto refused = [&](const std::string& arguments, const std::string& variables = "") {
    const Ran ran = machine.check(arguments, variables);
    CHECK(ran.exit_code == 2);
    return ran.error;
  };
  CHECK(refused("--build build --out out --only gpt", "STAND_IN_GPUS=0") ==
        "gpu_check: no GPU is visible (CUDA_VISIBLE_DEVICES is '')\n");
  CHECK(refused("--build nowhere --out out") ==
        "gpu_check: nowhere/orrery is not there; see " + machine.path("out") + "\n");
  CHECK(refused("--only colours").find("--only: no group 'colours'; known: llama gpt torch ") !=
        std::string::npos);
  CHECK(refused("--run 4") == "gpu_check: --run: expected 1, 2 or 3, found '4'\n");
  CHECK(refused("--speed") ==
        "gpu_check: expected --build, --run, --only, --from, --out, --results, --pack or --list, "
        "found '--speed'\n");
}

TEST_CASE("Three runs of under nine minutes each do all of the GPU check") {
  const Machine machine;
  std::istringstream lines{machine.check("--list").out};
  std::map<int, int> seconds;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words{line};
    int run = 0, most = 0;
    std::string group;
    words >> run >> group >> most;
    seconds[run] += most;
  }
  REQUIRE(seconds.size() == 3);
  for (const auto& [run, all] : seconds) {
    INFO(run);
    CHECK(all + 60 < 540);  // and a minute to see that the module loads
  }
}

TEST_CASE("A build is packed with the libraries that another machine may lack") {
  const Machine machine;
  const Ran packed = machine.check("--build build --pack small");
  INFO(packed.out << packed.error);
  CHECK(packed.exit_code == 0);
  CHECK(packed.out.find("small: ") == 0);
  CHECK(std::filesystem::exists(machine.path("small/lib/libfmt.so.9")));
  CHECK_FALSE(std::filesystem::exists(machine.path("small/lib/libc.so.6")));
  const Ran ran = machine.check("--build small --out out --only sanitizer");
  INFO(ran.out << ran.error);
  CHECK(ran.exit_code == 0);
}

// ldd answers as the loader would: a library is there once its folder is on the path. Of these
// versions no machine has one.
TEST_CASE("The GPU check finds CUDA's libraries in Python's packages, or names what is missing") {
  const Machine machine;
  machine.program("bin/ldd",
                  "for name in libcublas.so.99 libnccl.so.99; do\n"
                  "  found='not found'\n"
                  "  IFS=:\n"
                  "  for folder in $LD_LIBRARY_PATH; do\n"
                  "    [ -e \"$folder/$name\" ] && found=$folder/$name\n"
                  "  done\n"
                  "  printf '\\t%s => %s\\n' $name \"$found\"\n"
                  "done");
  for (const char* folder : {"site/nvidia/cu99/lib", "site/nvidia/nccl/lib"}) {
    std::filesystem::create_directories(machine.path(folder));
  }
  machine.scratch().write("site/nvidia/cu99/lib/libcublas.so.99", "");
  machine.scratch().write("site/nvidia/nccl/lib/libcudart.so.99", "");
  const std::string site = "PYTHONPATH=" + machine.path("site");
  const Ran without = machine.check("--build build --out out --only sanitizer", site);
  CHECK(without.exit_code == 2);
  CHECK(without.error ==
        "gpu_check: the module does not load: libnccl.so.99 not found where the loader looks, in " +
            machine.path("build") + "/lib, the CUDA toolkit or Python's packages; bring it in " +
            machine.path("build") + "/lib\n");
  machine.scratch().write("site/nvidia/nccl/lib/libnccl.so.99", "");
  const Ran with = machine.check("--build build --out out --only sanitizer", site);
  INFO(with.out << with.error);
  CHECK(with.exit_code == 0);
  const std::string found = machine.read("out/libraries.txt");
  INFO(found);
  CHECK(contains(found, "libcublas.so.99: " + machine.path("site/nvidia/cu99/lib") + "\n"));
  CHECK(contains(found, "libnccl.so.99: " + machine.path("site/nvidia/nccl/lib") + "\n"));
  CHECK(contains(found, "libcudart.so.99: where the loader looks\n"));  // of what the module loads
}

}  // namespace orrery::scenarios
