// Every document on standard output names itself: what it was made with, and what was asked.
#include <map>
#include <sstream>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

/// A call of every command that has --json.
std::map<std::string, std::vector<std::string>> calls(const Scratch& scratch) {
  const std::string kernels = scratch.write("kernels.csv",
                                            "id,source,kernel,gpu,dtype,m,n,k_or_seq,time_us\n"
                                            "a,own,gemm,h100-sxm,bf16,4096,4096,4096,230\n");
  const std::string steps = scratch.write("times.csv",
                                          "step,rank,compute_ms\n0,0,10\n0,1,10\n1,0,10\n1,1,13\n"
                                          "2,0,10\n2,1,13\n0,2,10\n1,2,10\n2,2,10\n");
  const std::string claims =
      scratch.write("claims.json", R"([{"id": "a", "quantity": "gpus", "value": 1}])");
  const std::string trace = scratch.path("trace.json"), saved = scratch.path("saved");
  REQUIRE(orrery("simulate llama3-8b-8-h100 --trace " + trace).exit_code == 0);
  REQUIRE(orrery("execute gpt-1rank --steps 1 --checkpoint " + saved).exit_code == 0);
  const std::string part = scratch.path("part.jsonl"), whole = scratch.path("whole.jsonl");
  const std::string vary = "llama3-8b-8-h100 --vary /plan/micro_batch=1,2 --store ";
  REQUIRE(orrery("sweep " + vary + part + " --shard 1/1").exit_code == 0);
  const std::string job = scratch.write("job.sbatch", "#SBATCH --nodes=2 --gpus-per-node=8\n");
  std::vector<std::string> shown;
  for (const char* kind :
       {"gpus", "gpus h100", "nodes", "nodes dgx-h100", "clusters", "sites", "models",
        "models gpt2", "software", "software nemo", "schedules", "schedules 1f1b", "collectives",
        "data-formats", "plan-fields", "topology 'dgx-h100 x 2'", "scenario", "scenario gpt-1rank",
        "program gpt-1rank --rank 0"}) {
    shown.emplace_back(kind);
  }
  return {
      {"simulate", {"llama3-8b-8-h100", "llama3-8b-8-h100 --set /plan/zero=0,1"}},
      {"show", shown},
      {"validate", {kernels}},
      {"plan", {"--model gpt2 --cluster dgx-a100-80gb --global-batch 8 --seq-len 128 --top 1"}},
      {"buy", {"--model gpt2 --tokens 1B --nodes hgx-h100 --gpus 8"}},
      {"train", {"llama3-8b-8-h100 --tokens 1B --samples 20", "molecular-dynamics-4-64-a100"}},
      {"fit curves", {"--from " + kernels}},
      {"calibrate", {"--storage /tmp --cluster dgx-h100 --budget 2s"}},
      {"execute", {"gpt-1rank --steps 1"}},
      {"scale", {"llama3-8b-8-h100 --gpus 8:16:x2"}},
      {"sweep", {vary + scratch.path("swept.jsonl")}},
      {"merge", {part + " --store " + whole}},
      {"contention", {"gpt-dp2"}},
      {"collective", {"--cluster dgx-h100 --op all_reduce --sizes 1MiB"}},
      {"compare", {trace + " " + trace}},
      {"diagnose", {steps}},
      {"import", {job}},
      {"export", {"llama3-8b-8-h100 --to slurm"}},
      {"check", {claims}},
      {"checkpoint verify", {saved}},
      {"schema", {""}},
  };
}

/// The words that begin a line under "Subcommands:".
std::vector<std::string> subcommands(const std::string& of) {
  std::istringstream lines{orrery(of + " --help").out};
  std::vector<std::string> words;
  bool listed = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "Subcommands:") {
      listed = true;
    } else if (listed && line.starts_with("  ") && line[2] != ' ') {
      words.push_back(line.substr(2, line.find(' ', 2) - 2));
    } else if (line.empty() && !words.empty()) {
      break;
    }
  }
  return words;
}

}  // namespace

TEST_CASE("Every document of every command names itself, and what was asked") {
  const Scratch scratch;
  const auto known = calls(scratch);
  std::vector<std::string> commands;
  for (const std::string& each : subcommands("")) {
    const std::vector<std::string> parts = subcommands(each);
    for (const std::string& part : parts) commands.push_back(each + " " + part);
    if (parts.empty()) commands.push_back(each);
  }
  REQUIRE(commands.size() > 20);
  for (const std::string& command : commands) {
    const bool has_json = orrery(command + " --help").out.find("--json") != std::string::npos;
    INFO(command << ": state a call of it here");
    // Minutes of work, with the documents of `fit curves`; and a page of what --json printed.
    const bool other = command == "fit software" || command == "report";
    if (has_json && !other) CHECK(known.contains(command));
  }
  for (const auto& [command, arguments] : known) {
    for (const std::string& each : arguments) {
      const Ran ran = orrery(command + " " + each + " --json");
      INFO(command << " " << each << ": " << ran.error << ran.out.substr(0, 300));
      REQUIRE(ran.exit_code < 2);
      const Json document = Json::parse(ran.out);
      REQUIRE(document.is_object());
      CHECK(document.value("command", "") == command);
      CHECK(document["orrery"]["version"].is_string());
      CHECK(document["orrery"]["catalogue"].is_string());
      CHECK(document["inputs"].is_object());
      CHECK(document["inputs"].empty() == each.empty());
      CHECK(document["changes"].size() == (each.find("--set") == std::string::npos ? 0 : 1));
    }
  }
}

TEST_CASE("An entry that was printed is read as the entry, whatever it says of itself") {
  const Scratch scratch;
  const auto printed = [&](const std::string& what, const std::string& name) {
    return scratch.write(name + ".json", orrery("show " + what + " " + name + " --json").out);
  };
  const std::string asked = "simulate llama3-8b-8-h100 --json ";
  const auto step = [](const std::string& call) { return parsed(orrery(call).out)["step_time_s"]; };
  const Json usual = step(asked);
  CHECK(step(asked + "--software " + printed("software", "nemo")) == usual);
  const std::string scenario = printed("scenario", "llama3-8b-8-h100");
  CHECK(step("simulate " + scenario + " --json") == usual);
  CHECK(step(asked + "--set '/cluster/node=" + printed("nodes", "dgx-h100") + "'") == usual);
}

}  // namespace orrery::scenarios
