#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "scenarios/exchange/suggestion.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

TEST_CASE("Names of models and clusters are suggested as Orrery writes them") {
  CHECK(model_meant("Llama-3-8b") == "llama3-8b");
  CHECK(model_meant("meta-llama/Llama-3.1-70B-Instruct") == "llama3.1-70b");
  CHECK(model_meant("mixtral-8x7B-v0.1") == "mixtral-8x7b");
  CHECK(model_meant("zzzzzzzzzzzz").empty());
  CHECK(cluster_meant("32 x dgx-h100") == "dgx-h100 x 32");
  CHECK(cluster_meant("dgx-h100x4") == "dgx-h100 x 4");
  CHECK(cluster_meant("DGX_H100 x 4") == "dgx-h100 x 4");
  CHECK(cluster_meant("h100 x 32") == "dgx-h100 x 4");  // GPUs: 8 on each node
  CHECK(cluster_meant("H200").find("h200") != std::string::npos);
  CHECK(cluster_meant("nothing x y").empty());
}

TEST_CASE("orrery alone says what to try") {
  const Ran ran = orrery("");
  CHECK(ran.exit_code == 0);
  CHECK(ran.out.find("orrery simulate llama3-8b-8-h100") != std::string::npos);
  CHECK(ran.out.find("orrery --help") != std::string::npos);
}

TEST_CASE("An unknown command, entry or key is answered with what was meant") {
  CHECK(refused_line("simulat x") ==
        "unknown command 'simulat'; did you mean 'simulate'? (orrery --help lists the commands)");
  CHECK(refused_line("frobnicate") ==
        "unknown command 'frobnicate' (orrery --help lists the commands)");
  CHECK(refused_line("simulate --model llama3-8b --cluster 'dgx-h100 x 99999999999999'")
            .find("/nodes: expected an integer from 1 to ") != std::string::npos);
  CHECK(orrery("simulate llama3-8b-8-h100 --plan ' tensor = 8 , zero = 1 '").out ==
        orrery("simulate llama3-8b-8-h100 --plan tensor=8,zero=1").out);
  CHECK(refused_line("simulate --model Llama-3-8b --cluster dgx-h100")
            .rfind("--model: unknown model 'Llama-3-8b' (did you mean 'llama3-8b'?); known: ", 0) ==
        0);
  CHECK(refused_line("simulate --model llama3-8b --cluster '32 x dgx-h100'")
            .find("(did you mean 'dgx-h100 x 32'?); known: ") != std::string::npos);
  CHECK(refused_line("simulate --model llama3-8b --cluster '32 H100'")
            .find("(did you mean 'dgx-h100 x 4'?)") != std::string::npos);
  CHECK(refused_line("simulate llama3-8b-h100").find("did you mean 'llama3-8b-8-h100'?") !=
        std::string::npos);
  CHECK(refused_line("simulate Llama-3-8b").find("did you mean 'llama3-8b-8-h100'?") !=
        std::string::npos);
  for (const char* asked : {"--version", "-V", "version"}) {
    CHECK(orrery(asked).out == orrery("--version").out);
    CHECK(orrery(asked).out.rfind("orrery ", 0) == 0);
  }
  CHECK(refused_line("simulate llama3-8b-8-h100 --plan tp=4")
            .rfind("--plan:/tp: unknown key; did you mean 'tensor'?", 0) == 0);
  CHECK(refused_line("show gpu").rfind("show: unknown 'gpu' (did you mean 'gpus'?); known: ", 0) ==
        0);
  CHECK(refused_line("show gpus h10").find("did you mean 'h100") != std::string::npos);
}

TEST_CASE("--plan with fields changes a scenario's plan, a file replaces it") {
  const Scenario base = Scenario::load("llama3-70b-64-h100");
  const Scenario changed = Scenario::load("llama3-70b-64-h100", {.plan = "micro_batch=2"});
  Json expected = base.json()["plan"];
  expected["micro_batch"] = 2;
  CHECK(changed.json()["plan"] == expected);
  const Scratch scratch;
  const std::string file = scratch.write("plan.json", R"({"tensor": 8})");
  CHECK(Scenario::load("llama3-70b-64-h100", {.plan = file}).json()["plan"] ==
        Json({{"tensor", 8}}));
  CHECK_FALSE(changed.published());
}

TEST_CASE("Another degree in --plan derives the number of replicas again") {
  const Scenario changed = Scenario::load("llama3-70b-64-h100", {.plan = "tensor=8"});
  CHECK(changed.question().plan.gpus() == 64);
}

TEST_CASE("Every command's help ends with an example") {
  for (const char* name : {"simulate", "plan", "buy", "scale", "sweep", "merge", "contention",
                           "collective", "compare", "validate", "fit", "calibrate", "execute",
                           "show", "checkpoint", "import", "export", "completion"}) {
    const Ran ran = orrery(std::string{name} + " --help");
    INFO(name);
    CHECK(ran.out.find("Example") != std::string::npos);
    CHECK(ran.out.find("  orrery ") != std::string::npos);
  }
}

TEST_CASE("bash completes commands, flags and names") {
  const Scratch scratch;
  const auto completed = [&](const std::string& words, int at) {
    const std::string script = "eval \"$(" ORRERY_COMMAND " completion bash)\"\nCOMP_WORDS=(" +
                               words + ")\nCOMP_CWORD=" + std::to_string(at) +
                               "\n_orrery\necho ${COMPREPLY[@]} > " + scratch.path("out");
    REQUIRE(std::system(("bash " + scratch.write("complete.sh", script)).c_str()) == 0);
    return scratch.read("out");
  };
  CHECK(completed("orrery simul", 1) == "simulate\n");
  CHECK(completed("orrery simulate --model gpt3", 3) == "gpt3-175b\n");
  CHECK(completed("orrery simulate --expl", 2) == "--explain\n");
  CHECK(completed("orrery simulate llama3-8b-8", 2) == "llama3-8b-8-h100\n");
}

}  // namespace
}  // namespace orrery::scenarios
