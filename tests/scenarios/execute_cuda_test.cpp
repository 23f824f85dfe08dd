// orrery execute --backend cuda, without a GPU: what is said where there is none, and whole runs on
// a stand-in for the CUDA module whose GPUs are threads (tests/stand_in).

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

enum class Beside { nothing, stand_in };

/// A copy of the command with or without a CUDA module next to it.
class Installed {
 public:
  explicit Installed(Beside beside) {
    std::filesystem::copy_file(ORRERY_COMMAND, scratch_.path("orrery"));
    if (beside == Beside::nothing) return;
    const auto tests = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    std::filesystem::copy_file(tests / "libcuda_stand_in.so", scratch_.path("liborrery_cuda.so"));
  }

  /// `orrery execute ARGUMENTS` with variables set before it.
  Ran execute(const std::string& arguments, const std::string& variables = "") const {
    const std::string line = variables + " " + scratch_.path("orrery") + " execute " + arguments +
                             " >" + scratch_.path("out") + " 2>" + scratch_.path("error");
    const int status = std::system(line.c_str());
    Ran ran;
    ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    ran.out = scratch_.read("out");
    ran.error = scratch_.read("error");
    return ran;
  }

  std::string refused(const std::string& arguments, const std::string& variables = "") const {
    const Ran ran = execute(arguments, variables);
    CHECK(ran.exit_code == 2);
    CHECK(ran.out.empty());
    return ran.error;
  }

 private:
  Scratch scratch_;
};

const std::string one_step = "gpt-1rank --steps 1 ";

std::vector<double> losses(const Ran& ran) {
  INFO(ran.error);
  REQUIRE(ran.exit_code == 0);
  const Json reported = parsed(ran.out);
  std::vector<double> found;
  for (const Json& step : reported.at("steps")) found.push_back(step.at("loss"));
  return found;
}

}  // namespace

TEST_CASE("Words that are no backend and no fabric are refused with those that are") {
  CHECK(refused_line("execute gpt-1rank --backend tpu") ==
        "--backend: expected cpu or cuda, found 'tpu'");
  CHECK(refused_line("execute gpt-1rank --fabric pigeon") ==
        "--fabric: expected tcp, mpi, threads or nccl, found 'pigeon'");
  CHECK(refused_line("execute gpt-1rank --fabric nccl") == "--fabric: nccl needs --backend cuda");
}

TEST_CASE("Without its module or a GPU the CUDA backend says so in one sentence") {
  CHECK(
      Installed{Beside::nothing}.refused(one_step + "--backend cuda") ==
      "--backend: cuda: this orrery was built without CUDA; ./setup.sh --build --cuda builds it\n");
  CHECK(Installed{Beside::stand_in}.refused(one_step + "--backend cuda", "STAND_IN_GPUS=0") ==
        "--backend: cuda: no GPU is visible (CUDA_VISIBLE_DEVICES is '')\n");
}

TEST_CASE("A GPU that nobody knows needs a cluster to be predicted for") {
  const Installed installed{Beside::stand_in};
  const std::string unknown = "STAND_IN_GPU='NVIDIA Toy 1'";
  CHECK(installed.refused(one_step + "--backend cuda", unknown) ==
        "--cluster: missing: the catalogue has no 'NVIDIA Toy 1'\n");
  const std::string named = "--backend cuda --cluster dgx-h100 --set /cluster/node/gpus=1";
  const Ran ran = installed.execute(one_step + named, unknown);
  INFO(ran.error);
  CHECK(ran.exit_code == 0);
}

// The stand-in computes with the CPU device, so a run's losses are the CPU's to the last bit.
TEST_CASE("A run on a device with queues is the CPU's run, predicted for the GPU found") {
  const Installed installed{Beside::stand_in};
  const std::string run = "gpt-1rank --steps 2 --json ";
  const Ran gpu = installed.execute(run + "--backend cuda");
  REQUIRE(losses(gpu).size() == 2);
  CHECK(losses(gpu) == losses(installed.execute(run)));
  CHECK(gpu.error.find("predicting for hgx-h200 x 1 with 1 GPUs per node: NVIDIA H200 is "
                       "recognised as h200-sxm-141gb\n") == 0);
  CHECK(parsed(gpu.out).at("device") == "threads as queues");
}

// Forward and backward of 4 layers, embedding and head are 12 launches for each of 4 micro-batches.
// These follow each other in the same memory and share the layers' 8 graphs; the ends' 4 they have
// each, as tokens and labels lie elsewhere.
TEST_CASE("Kernels launched as CUDA graphs compute the same and are counted") {
  const Installed installed{Beside::stand_in};
  const std::string run = "gpt-1rank --steps 3 --backend cuda ";
  const std::string graphs = "--set /plan/cuda_graphs=true ";
  const Ran with = installed.execute(run + graphs + "--json --explain");
  CHECK(losses(with) == losses(installed.execute(run + "--json")));
  const std::string reported =
      "kernels in CUDA graphs cannot be timed individually: the step is recorded instruction by "
      "instruction\n";
  CHECK(with.error.find(reported) != std::string::npos);
  const Json json = parsed(with.out);
  INFO(json.at("cuda_graphs").dump());
  CHECK(json.at("cuda_graphs").at("graphs") == 8 + 4 * 4);
  CHECK(json.at("cuda_graphs").at("launches_in_last_step") == 4 * 12);
  CHECK(json.at("comparison").at("unmatched") == 0);
  const Ran text = installed.execute(run + graphs);
  INFO(text.out);
  CHECK(text.out.find("  CUDA graphs ") != std::string::npos);
  CHECK(text.error.find(reported) == std::string::npos);
  CHECK(parsed(installed.execute(run + "--json").out).count("cuda_graphs") == 0);
}

TEST_CASE("CUDA graphs are refused where a launch returns with the operation's end") {
  CHECK(refused_line("execute gpt-1rank --steps 1 --set /plan/cuda_graphs=true")
            .find("cuda_graphs needs asynchronous launches; the launches of orrery-cpu are "
                  "synchronous") != std::string::npos);
}

TEST_CASE("Ranks that share a GPU speak by way of the host's memory and say why") {
  const Installed installed{Beside::stand_in};
  const std::string run = "gpt-dp2 --steps 2 --json ";
  const Ran gpu = installed.execute(run + "--backend cuda", "STAND_IN_NCCL=1");
  const std::vector<double> found = losses(gpu), expected = losses(installed.execute(run));
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(found.at(i) == Approx(expected.at(i)).epsilon(1e-6));
  INFO(gpu.error);
  CHECK(gpu.error.find(
            "GPUs communicate over tcp through the host's memory: NCCL refuses several ranks "
            "on one GPU before its version 2.30\n") != std::string::npos);
  CHECK(parsed(gpu.out).at("fabric") == "tcp, staged");
}

TEST_CASE("Ranks with a GPU each communicate over NCCL unless another fabric is asked for") {
  const Installed installed{Beside::stand_in};
  const std::string run = "gpt-dp2 --steps 1 --backend cuda ";
  const std::string two = "STAND_IN_GPUS=2 STAND_IN_NCCL=1";
  const Ran chosen = installed.execute(run, two);
  CHECK(chosen.exit_code == 72);
  CHECK(chosen.error.find("the stand-in's NCCL was chosen") != std::string::npos);
  const Ran asked = installed.execute(run + "--fabric tcp", two);
  INFO(asked.error);
  CHECK(asked.exit_code == 0);
  CHECK(asked.error.find(
            "GPUs communicate over tcp through the host's memory: as requested by --fabric\n") !=
        std::string::npos);
  const Ran shared = installed.execute(run + "--fabric nccl", "STAND_IN_NCCL=1");
  CHECK(shared.error.find("the stand-in's NCCL was chosen") != std::string::npos);
  const Ran without = installed.execute(run + "--fabric nccl", "STAND_IN_GPUS=2");
  CHECK(without.exit_code == 2);
  CHECK(without.error.find("--fabric: nccl: this orrery was built without NCCL") !=
        std::string::npos);
}

}  // namespace orrery::scenarios
