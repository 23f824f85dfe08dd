#include <fmt/format.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "scenarios/page/charts.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string validation_folder = ORRERY_SOURCE "/scenarios/validation/";

/// What README.md says, with one space between words.
std::string validation_readme() {
  std::ostringstream text;
  text << std::ifstream{validation_folder + "README.md"}.rdbuf();
  return std::regex_replace(text.str(), std::regex{"\\s+"}, " ");
}

double sum_apart(const Json& validated, const char* key) {
  double sum = 0;
  for (const auto& [group, scores] : validated["apart"].items()) sum += scores[key].get<double>();
  return sum;
}

// Megatron-LM on 64 and 128 A100 (Narayanan et al. 2021, arXiv 2104.04473, table 1): 138 and 142
// TFLOP/s per GPU, as step times by the paper's formula; and a run of experts.
const std::string runs =
    "run,software,software_year,task,family,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,"
    "experts,gpu,gpus,gpus_per_node,network,tp,pp,dp,zero_stage,recompute,precision,micro_batch,"
    "global_batch,step_time_s\n"
    "a,megatron-lm,2021,pretrain,gpt,3.6B,30,3072,32,12288,51200,2048,,a100-sxm-80gb,64,8,"
    "8x HDR InfiniBand 200Gb/s per node,2,1,32,0,full,fp16,16,512,3.697\n"
    "b,megatron-lm,2021,pretrain,gpt,7.5B,36,4096,32,16384,51200,2048,,a100-sxm-80gb,128,8,"
    "8x HDR InfiniBand 200Gb/s per node,4,1,32,0,full,fp16,16,512,3.696\n"
    "c,megatron-lm,2021,pretrain,transformer-xl,base,16,512,8,2048,32000,4096,,a100-sxm-80gb,64,8,"
    "8x HDR InfiniBand 200Gb/s per node,1,1,64,0,none,bf16,1,64,9.0\n";

TEST_CASE("The README's counts of runs are the sums over validate's groups", "[heavy]") {
  const Json json = parsed(orrery("validate " + validation_folder + "runs.csv --json").out);
  const double own = json["scored"], others = sum_apart(json, "scored");
  const double refused = json["said_not_to_fit"].get<double>() + sum_apart(json, "said_not_to_fit");
  CHECK_THAT(validation_readme(),
             Catch::Contains(
                 fmt::format("Of the {} runs {} are simulated and {} scored: these {}, and {} "
                             "that are reported separately below.",
                             count_words(json["rows"]), count_words(json["simulated"]),
                             count_words(own + others), count_words(own), count_words(others))));
  CHECK_THAT(
      validation_readme(),
      Catch::Contains(fmt::format("Of the {} scored runs, all of which ran, {} are predicted not "
                                  "to fit",
                                  count_words(own + others), count_words(refused))));
}

TEST_CASE("The README's errors of three hybrid models are what its command prints", "[heavy]") {
  std::ifstream all{validation_folder + "runs.csv"};
  std::string text, line;
  while (std::getline(all, line)) {
    if (line.starts_with("run,") || line.starts_with("HYB-MB")) text += line + "\n";
  }
  const Scratch scratch;
  const Json json = parsed(
      orrery("validate " + scratch.write("hybrids.csv", text) + " --leave-out model --json").out);
  const auto errors = [&](const char* of) {
    return fmt::format("{:.1f} % and {:.1f} %", json[of]["rows_median_pct"].get<double>(),
                       json[of]["rows_p90_pct"].get<double>());
  };
  CHECK_THAT(validation_readme(),
             Catch::Contains(
                 fmt::format("are {} runs of three models. Median and 90th percentile of "
                             "|ln(predicted / measured)| are {} as the profile is, and {} "
                             "with each model left out",
                             json["scored"].get<int>(), errors("as_it_is"), errors("left_out"))) &&
                 Catch::Contains(
                     fmt::format("{:.0f} % inside p10 to p90:", json["inside_pct"].get<double>())));
}

TEST_CASE("validate prints one document with what was simulated and what was skipped") {
  const Scratch scratch;
  const Ran ran = orrery("validate " + scratch.write("runs.csv", runs) + " --json");
  REQUIRE(ran.exit_code == 0);
  CHECK(ran.error.empty());
  const Json json = parsed(ran.out);
  CHECK(json["kind"] == "training runs");
  CHECK(json["rows"] == 3);
  CHECK(json["simulated"] == 2);
  CHECK(json["scored"] == 2);
  CHECK(
      json["skipped"].dump() ==
      R"([{"run":"c","reason":"family transformer-xl is not simulated: attention over a memory of )"
      R"(earlier segments, adaptive softmax"}])");
  CHECK(json["runs"][0]["run"] == "a");
  CHECK(json["runs"][0]["measured_peak_memory_bytes"].is_null());
  CHECK(json["by"]["software"]["megatron-lm"]["rows"] == 2);
  CHECK(json["median_abs_error_pct"].get<double>() < 20);
}

TEST_CASE("validate groups by the columns that are asked for and lists the worst runs") {
  const Scratch scratch;
  const std::string file = scratch.write("runs.csv", runs);
  const Ran table = orrery("validate --by model --by gpus " + file + " --worst 1");
  REQUIRE(table.exit_code == 0);
  CHECK(table.out.find("3 runs, 2 simulated, 2 scored") == 0);
  CHECK(table.out.find("\nmodel ") != std::string::npos);
  CHECK(table.out.find("\ngpus ") != std::string::npos);
  CHECK(table.out.find("\nworst ") != std::string::npos);
  CHECK(table.out.find("     1  family transformer-xl is not simulated") != std::string::npos);
}

TEST_CASE("validate refuses an unknown column and a table of something else") {
  const Scratch scratch;
  const Ran unknown = orrery("validate " + scratch.write("runs.csv", runs) + " --by colour");
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.out.empty());
  CHECK(unknown.error.find("--by: unknown column 'colour' in ") == 0);
  const Ran other = orrery("validate " + scratch.write("nccl.csv", "op,bytes\nall_reduce,8\n"));
  CHECK(other.exit_code == 2);
  CHECK(other.error.find("holds no training runs; accepted: a header with run, software,") !=
        std::string::npos);
}

TEST_CASE("validate refuses by name each flag that --leave-out does not take") {
  const Scratch scratch;
  const std::string file = scratch.write("runs.csv", runs);
  for (const std::string flag : {"--page folder", "--record errors.json", "--by model", "--worst 3",
                                 "--software own.json", "--in-sample"}) {
    CHECK(refused_line("validate " + file + " --leave-out software " + flag) ==
          flag.substr(0, flag.find(' ')) +
              ": not with --leave-out, which takes --own, --threads and --json alone");
  }
  CHECK_FALSE(std::filesystem::exists("folder"));
  CHECK(refused_line("validate " + file + " --in-sample") ==
        "--in-sample: expected a file of kernels or collectives");
}

TEST_CASE("A profile of one's own stands before the shipped one") {
  // A whole second more on the host, once a step.
  const Scratch scratch;
  const std::string file = scratch.write("runs.csv", runs);
  const Json before = parsed(orrery("validate " + file + " --json").out);
  Json profile = parsed(orrery("show software megatron-lm --json").out);
  if (profile.contains("software")) profile = profile["software"];
  profile["host"]["step"] = "1010 ms";
  const std::string own = scratch.write("own.json", profile.dump());
  const Json after = parsed(orrery("validate " + file + " --json --software " + own).out);
  const auto step = [](const Json& json) {
    return json["runs"][0]["predicted_step_time_s"].get<double>();
  };
  CHECK(step(after) - step(before) == Approx(1.0).margin(0.02));
}

}  // namespace
}  // namespace orrery::scenarios
