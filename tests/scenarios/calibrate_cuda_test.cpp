// orrery calibrate --backend cuda, without a GPU: what is said where there is none, and a whole
// trial on a stand-in for the CUDA module whose GPUs are threads (tests/stand_in).

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

/// `orrery ARGUMENTS` by a copy of the command that has the stand-in next to it.
Ran beside_stand_in(const Scratch& scratch, const std::string& arguments,
                    const std::string& variables = "") {
  const auto once = std::filesystem::copy_options::skip_existing;
  std::filesystem::copy_file(ORRERY_COMMAND, scratch.path("orrery"), once);
  const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  std::filesystem::copy_file(tests / "libcuda_stand_in.so", scratch.path("liborrery_cuda.so"),
                             once);
  const std::string line = variables + " " + scratch.path("orrery") + " " + arguments + " >" +
                           scratch.path("out") + " 2>" + scratch.path("error");
  const int status = std::system(line.c_str());
  Ran ran;
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ran.out = scratch.read("out");
  ran.error = scratch.read("error");
  return ran;
}

}  // namespace

TEST_CASE("Without a GPU a calibration says so in one sentence, and writes nothing") {
  const Scratch scratch;
  const std::string profile = scratch.path("gpu.json");
  const Ran ran =
      beside_stand_in(scratch, "calibrate --backend cuda --out " + profile, "STAND_IN_GPUS=0");
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.error == "--backend: cuda: no GPU is visible (CUDA_VISIBLE_DEVICES is '')\n");
  CHECK_FALSE(std::filesystem::exists(profile));
  const Ran narrow = beside_stand_in(scratch, "calibrate --backend cuda --widest 64");
  CHECK(narrow.exit_code == 2);
  CHECK(narrow.error == "--widest: expected 128 or more, found 64\n");
}

TEST_CASE("A calibration on a stand-in makes a profile that simulate and execute take", "[heavy]") {
  const Scratch scratch;
  const std::string profile = scratch.path("gpu.json");
  const Ran ran = beside_stand_in(
      scratch, "calibrate --backend cuda --widest 128 --budget 4s --json --out " + profile);
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  const Json reported = parsed(ran.out);
  CHECK(reported.at("gpu") == "NVIDIA H200");
  CHECK(reported.at("failures").empty());
  const Json made = parsed(scratch.read("gpu.json"));
  CHECK(made.at("node").at("gpu").at("name") == "h200-sxm-141gb");
  CHECK(made.at("node").at("gpu").at("measured").at("gemm").contains("bf16"));
  CHECK(made.at("node").at("gpu").at("attention").contains("orrery"));  // threads run it
  CHECK(made.at("software").at("name") == "orrery-cuda");
  CHECK(std::filesystem::exists(scratch.path("gpu.samples.json")));

  const std::string plan =
      "--model gpt2 --plan precision=bf16,seq_len=128,global_batch=1 --json --cluster " + profile;
  const Ran simulated = beside_stand_in(scratch, "simulate " + plan);
  INFO(simulated.error);
  REQUIRE(simulated.exit_code == 0);
  CHECK(parsed(simulated.out).at("step_time_s") > 0);
  const Ran executed = beside_stand_in(
      scratch, "execute gpt-1rank --steps 1 --json --backend cuda --cluster " + profile);
  INFO(executed.error);
  CHECK(executed.exit_code == 0);
}

// A point of its sample lines is one of a product: then there is something to make a profile of.
TEST_CASE("A calibration that is asked to end keeps its profile, and a killed one its samples",
          "[heavy]") {
  const Scratch scratch;
  beside_stand_in(scratch, "--version");
  const auto ended_by = [&](const std::string& signal) {
    scratch.write("run.sh",
                  "cd " + scratch.path("") +
                      "\nrm -f gpu.*\n"
                      "./orrery calibrate --backend cuda --widest 128 --budget 6s --out gpu.json "
                      ">out 2>error & \n"
                      "until grep -q '\"gemm\"' gpu.samples.jsonl || ! kill -0 $!; do sleep 0.02; "
                      "done 2>/dev/null\n"
                      "kill -" +
                      signal + " $!\nwait $!\n");
    const int status = std::system(("bash " + scratch.path("run.sh") + " 2>/dev/null").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  for (const auto& [signal, code] : {std::pair{"TERM", 143}, std::pair{"INT", 130}}) {
    INFO(signal);
    CHECK(ended_by(signal) == code);
    const Json profile = parsed(scratch.read("gpu.json"));
    CHECK(profile.at("node").at("gpu").at("measured").contains("gemm"));
    CHECK_FALSE(parsed(scratch.read("gpu.samples.json")).at("measurements").empty());
    CHECK_FALSE(std::filesystem::exists(scratch.path("gpu.samples.jsonl")));
  }
  CHECK(ended_by("KILL") == 137);
  std::istringstream lines{scratch.read("gpu.samples.jsonl")};
  int points = 0;
  for (std::string line; std::getline(lines, line); ++points) {
    CHECK(parsed(line).at("parts").size() > 0);
  }
  CHECK(points > 0);
}

}  // namespace orrery::scenarios
