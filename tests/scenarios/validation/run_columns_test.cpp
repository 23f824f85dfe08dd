// What the columns of a file of training runs may state, and what is said of those that nothing
// reads.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "models/plan/fields.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/validation/runs/run_question.hpp"
#include "sim/errors.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string usual =
    "run,software,software_year,family,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,gpus,"
    "gpus_per_node,tp,pp,dp,zero_stage,recompute,precision,micro_batch,global_batch,step_time_s";
const std::string cells =
    "a,megatron-lm,2021,gpt,3.6B,30,3072,32,12288,51200,2048,a100-sxm-80gb,8,8,2,1,4,0,full,fp16,4,"
    "64,3.697";

/// One run with one more column.
std::string with(const std::string& column, const std::string& cell) {
  return usual + "," + column + "\n" + cells + "," + cell + "\n";
}

MeasuredRun run_with(const std::string& column, const std::string& cell) {
  return read_runs(orrery::Table::parse(with(column, cell), "runs.csv")).at(0);
}

models::Question asked_with(const std::string& column, const std::string& cell) {
  Questions questions;
  auto asked = questions.of(run_with(column, cell));
  if (const Skip* skip = std::get_if<Skip>(&asked)) throw std::runtime_error{skip->reason};
  return std::get<models::Question>(asked);
}

/// A value that every field of this kind takes.
std::string some_value(const models::PlanField& field) {
  using Kind = models::PlanValue::Kind;
  switch (field.value.kind) {
    case Kind::count:
      return std::to_string(std::max<std::int64_t>(field.value.least, 1));
    case Kind::flag:
      return "yes";
    case Kind::word:
    case Kind::word_list:
      return field.value.words().front();
    default:
      return "1";
  }
}

TEST_CASE("A line may state every field of a plan by its name") {
  for (const models::PlanField& field : models::plan_fields()) {
    const std::string key{field.key};
    if (usual.find("," + key + ",") != std::string::npos) continue;  // stated already
    INFO(key);
    const std::string value = some_value(field);
    const std::string published{field.column};
    const bool twice = usual.find("," + published + ",") != std::string::npos;
    if (!published.empty() && twice) continue;  // "tp" states it
    CHECK(run_with(key, value).stated(key) == value);
    CHECK(unread_columns(orrery::Table::parse(with(key, value), "runs.csv")).empty());
    if (!published.empty()) CHECK(run_with(published, value).stated(key) == value);
  }
}

TEST_CASE("What a line states of kernels, overlap and memory is in the plan that is simulated") {
  CHECK(asked_with("attention", "flash-2").plan.kernels.attention ==
        models::AttentionKernel::flash_2);
  CHECK_FALSE(asked_with("tensor_overlap", "no").plan.overlap.tensor);
  CHECK_THROWS_WITH(asked_with("imbalance", "1.5"),
                    Catch::Matchers::Contains("the model has no experts"));
  CHECK(asked_with("fused_cross_entropy", "yes").plan.kernels.fused_cross_entropy);
  CHECK(asked_with("tied", "no").model.embedding.tied == false);
  CHECK(asked_with("tied", "yes").model.embedding.tied);
  // A head of its own is 51,200 x 3,072 more parameters.
  CHECK(asked_with("tied", "no").model.parameters - asked_with("tied", "yes").model.parameters ==
        51200 * 3072);
}

TEST_CASE("Two columns that state one field differently are refused, and a flag that is none") {
  CHECK(run_with("tensor", "2").stated("tensor") == "2");
  CHECK_THROWS_WITH(
      run_with("tensor", "4"),
      "runs.csv:line 2: column 'tp': expected 4, as column 'tensor' says, found \"2\"");
  CHECK_THROWS_WITH(run_with("sequence_parallel", "maybe"),
                    "runs.csv:line 2: column 'sequence_parallel': expected yes or no, found "
                    "\"maybe\"");
}

TEST_CASE("The cell of recomputation may name its modules") {
  const MeasuredRun run =
      read_runs(orrery::Table::parse(usual + "\n" +
                                         std::string{cells}.replace(cells.find(",full,"), 6,
                                                                    ",selective:layernorm:mlp,"),
                                     "runs.csv"))
          .at(0);
  Questions questions;
  auto asked = questions.of(run);
  REQUIRE(std::holds_alternative<models::Question>(asked));
  const models::RecomputeChoices& chosen = std::get<models::Question>(asked).plan.recompute;
  CHECK(chosen.kind == models::Recompute::selective);
  WordSet<models::RecomputeModule> named{};
  named.add(models::RecomputeModule::layernorm);
  named.add(models::RecomputeModule::mlp);
  CHECK(chosen.modules == named);
}

TEST_CASE("A time that no step can have spoils no mean: it is refused") {
  std::string text = usual + "\n" + cells + "\n";
  text.replace(text.rfind("3.697"), 5, "1e-320");
  CHECK_THROWS_AS(read_runs(orrery::Table::parse(text, "runs.csv")), InputError);
}

TEST_CASE("validate names the columns that nothing reads, once, and goes on") {
  const Scratch scratch;
  const std::string file =
      scratch.write("runs.csv", usual + ",notes,atention\n" + cells + ",a note,flash-2\n");
  const Ran ran = orrery("validate " + file);
  CHECK(ran.exit_code == 0);
  const std::string line =
      "columns that nothing reads: notes, atention (did you mean 'attention'?)\n";
  CHECK(ran.out.rfind(line, 0) == 0);
  CHECK(parsed(orrery("validate --json " + file).out)["unread_columns"] ==
        Json({"notes", "atention"}));
}

/// Every so many lines of the published runs.
std::vector<MeasuredRun> some_published_runs() {
  const std::string file = std::string{ORRERY_SOURCE} + "/scenarios/validation/runs.csv";
  const std::vector<MeasuredRun> all = read_runs(orrery::Table::load(file));
  constexpr std::size_t stride = 7;  // prime: no regular grid of a publication repeats with it
  std::vector<MeasuredRun> some;
  for (std::size_t i = 0; i < all.size(); i += stride) some.push_back(all[i]);
  return some;
}

TEST_CASE("validate and simulate take the same kernels for the same run") {
  Questions questions;
  int compared = 0;
  for (const MeasuredRun& run : some_published_runs()) {
    auto asked = questions.of(run);
    if (std::holds_alternative<Skip>(asked) || !run.year) continue;
    const models::Question& validated = std::get<models::Question>(asked);
    const std::vector<std::string> known = models::software_names();
    if (std::ranges::find(known, run.software) == known.end()) continue;
    INFO(run.run << " " << run.software << " " << *run.year);
    const Scenario scenario = Scenario::load(std::nullopt, {.model = "gpt2",
                                                            .cluster = "dgx-a100-80gb",
                                                            .plan = "tensor=1",
                                                            .software = run.software,
                                                            .year = static_cast<int>(*run.year)});
    const models::Software simulated =
        models::read_software(Node{scenario.json().at("software"), "simulate", "/software"});
    const std::string& generation = validated.cluster.gpu().generation.name;
    const models::AttentionKernel chosen = validated.plan.kernels.attention;
    CHECK(simulated.attention(generation, chosen) ==
          validated.software.attention(generation, chosen));
    CHECK(simulated.kernels.softmax_in_fours == validated.software.kernels.softmax_in_fours);
    CHECK(simulated.year == validated.software.year);
    CHECK(simulated.lineage == validated.software.lineage);
    ++compared;
  }
  CHECK(compared > 150);
}

TEST_CASE("The year decides in simulate as in validate which profile stands for a stack") {
  const ScenarioParts parts{.model = "gpt2",
                            .cluster = "dgx-h100",
                            .plan = "tensor=1",
                            .software = "megatron-lm",
                            .year = 2025};
  const Json scenario = Scenario::load(std::nullopt, parts).json();
  CHECK(scenario.at("software").at("name") == "megatron-core");
  CHECK(scenario.at("assumptions").back() ==
        "/software: runs of megatron-lm in 2025 are those of megatron-core");
}

}  // namespace
}  // namespace orrery::scenarios
