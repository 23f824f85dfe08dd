// Other simulators' tables: how far we are from their measured steps, and what the page says of it.

#include "scenarios/validation/runs/other_simulators.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "scenarios/question/validation_request.hpp"
#include "scenarios/validation/runs/run_question.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

const std::string folder_of_tables = std::string{ORRERY_SOURCE} + "/scenarios/validation/";

/// Loose bounds of |error| in percent, means as typed and with the run's flags. No number is fitted
/// to these runs, so a bound says only that the comparison still holds.
struct SimulatorBound {
  const char* simulator;
  std::size_t rows;
  double as_typed, with_flags;
};
constexpr SimulatorBound simulator_bounds[] = {
    {"SimuMax 1.2 on B200", 24, 20, 12},
    {"SimuMax 1.2 on B200, experts", 12, 22, 22},
    {"SimuMax 1.2 on B200, long sequences", 7, 25, 25},
    {"SimuMax on A100 PCIe", 12, 45, 35},
    {"Calculon", 8, 7, 7},
    {"NeuSight", 11, 12, 12},
    {"vTrain, many nodes", 109, 17, 14},
    {"vTrain, one node", 1440, 9, 9},
};

/// What makes two rows the same measurement.
std::string measurement_of(const Row& row) {
  std::string key;
  for (const char* column : {"gpu", "gpus", "layers", "hidden", "heads", "seq_len", "tp", "pp",
                             "micro_batch", "global_batch"}) {
    key += std::string{row.text(column)} + '|';
  }
  std::ostringstream time;
  time.precision(3);
  time << row.number("step_time_s").value_or(0);
  return key + time.str();
}

TEST_CASE("Steps that other simulators published are predicted, and the page shows how far off") {
  const ValidationReport report =
      validate(ValidationRequest{.file = folder_of_tables + "other_simulators.csv"}, {});
  CHECK(report.json["unread_columns"] == Json{"noise_pct"});
  CHECK(report.json["skipped"].empty());
  const Json& simulators = report.json["by_simulator"];
  CHECK(simulators.size() == std::size(simulator_bounds));
  for (const SimulatorBound& each : simulator_bounds) {
    INFO(each.simulator);
    const Json& found = simulators.at(each.simulator);
    CHECK(found["rows"] == each.rows);
    CHECK(found["as_typed"]["mean_abs_error_pct"].get<double>() < each.as_typed);
    CHECK(found["with_flags"]["mean_abs_error_pct"].get<double>() < each.with_flags);
  }
  const std::size_t begin = report.text.find("by simulator");
  REQUIRE(begin != std::string::npos);
  std::ostringstream page;
  page << std::ifstream{folder_of_tables + "other_simulators.md"}.rdbuf();
  INFO("other_simulators.md must show what its command prints:\n" << report.text.substr(begin));
  CHECK(page.str().find("```text\n" + report.text.substr(begin) + "```") != std::string::npos);
}

TEST_CASE("A step of another simulator's table says whether runs.csv has it") {
  std::set<std::string> known;
  const orrery::Table runs = orrery::Table::load(folder_of_tables + "runs.csv");
  for (std::size_t i = 0; i < runs.size(); ++i) known.insert(measurement_of(runs[i]));
  const orrery::Table others = orrery::Table::load(folder_of_tables + "other_simulators.csv");
  for (std::size_t i = 0; i < others.size(); ++i) {
    INFO(others[i].text("run"));
    CHECK(known.contains(measurement_of(others[i])) == (others[i].text("seen") != "no"));
  }
}

const std::string compared_header =
    "run,software,software_year,family,model,layers,hidden,heads,ffn_hidden,vocab,seq_len,gpu,gpus,"
    "gpus_per_node,network,tp,pp,dp,precision,micro_batch,global_batch,recompute,step_time_s,"
    "simulator,simulator_step_time_s,simulator_mean_pct,flags,seen\n";

std::string compared_row(const std::string& name, const std::string& recompute,
                         const std::string& rest) {
  return name +
         ",megatron-lm,2021,gpt,3.6B,30,3072,32,12288,51200,2048,a100-sxm-80gb,64,8,8x HDR "
         "InfiniBand 200Gb/s per node,2,1,32,fp16,16,512," +
         recompute + ",4," + rest + "\n";
}

ValidationReport compared(const std::string& rows) {
  const Scratch scratch;
  return validate(ValidationRequest{.file = scratch.write("runs.csv", compared_header + rows)}, {});
}

TEST_CASE("A simulator's own errors are those of its published times, or what it states") {
  // Of 4 s measured: 5 s is 25 % too long, 3 s 25 % and 3.8 s 5 % too short. Median 25, mean 55/3.
  const ValidationReport report =
      compared(compared_row("a", "full", "x,5,,,no") + compared_row("b", "full", "x,3,,,fit") +
               compared_row("c", "full", "x,3.8,,,listed") +
               compared_row("d", "full", "y,,12.5,,") + compared_row("e", "full", ",,,,"));
  const Json& own = report.json["by_simulator"]["x"];
  CHECK(own["rows"] == 3);
  CHECK(own["in_fits"] == 1);
  CHECK(own["inside_with_flags"] == 3);  // 4 s measured are within 10 % of the prediction
  CHECK(own["unseen_with_flags"]["rows"] == 1);
  CHECK(own["their_own"]["median_abs_error_pct"].get<double>() == Approx(25));
  CHECK(own["their_own"]["mean_abs_error_pct"].get<double>() == Approx(55.0 / 3));
  CHECK(own["runs"][1]["their_own_step_time_s"] == 3.0);
  CHECK(report.json["by_simulator"]["y"]["their_own"]["rows"] == 0);
  CHECK(report.json["by_simulator"]["y"]["their_own_stated_mean_pct"] == 12.5);
  CHECK(report.json["by_simulator"].size() == 2);
  CHECK(report.text.find("         -    12.5 %\n") != std::string::npos);
}

TEST_CASE("Flags change a run as columns of its table would") {
  const Json flagged =
      compared(compared_row("a", "", "x,5,,recompute=full zero=1 sequence=true,")).json;
  const Json stated = compared(compared_row("a", "full", "x,5,,zero_stage=1 sequence=yes,")).json;
  const Json& own = flagged["by_simulator"]["x"]["runs"][0];
  CHECK(own["with_flags_step_time_s"] ==
        stated["by_simulator"]["x"]["runs"][0]["with_flags_step_time_s"]);
  CHECK(own["as_typed_step_time_s"] != own["with_flags_step_time_s"]);
  CHECK(own["as_typed_step_time_s"] == flagged["runs"][0]["predicted_step_time_s"]);
}

TEST_CASE("A flag that is no plan field, or contradicts the table, is refused") {
  const Scratch scratch;
  const std::string file = scratch.path("runs.csv");
  const auto line = [&](const std::string& recompute, const std::string& rest) {
    scratch.write("runs.csv", compared_header + compared_row("a", recompute, rest));
    const std::string refused = refused_line("validate " + file);
    return refused.substr(refused.find(":line"));
  };
  const std::string fields =
      ":line 2: column 'flags': expected plan fields such as zero=1 recompute=none (orrery show "
      "plan-fields lists them), not '";
  CHECK(line("", "x,5,,zeros=1,") == fields + "zeros=1', found \"zeros=1\"");
  CHECK(line("", "x,5,,zero=1 recompute,") == fields + "recompute', found \"zero=1 recompute\"");
  CHECK(line("", "x,5,,sequence=maybe,") ==
        ":line 2: column 'flags': expected sequence=true or sequence=false, found "
        "\"sequence=maybe\"");
  CHECK(line("", "x,5,,virtual_stages=0,") ==
        ":line 2: column 'flags': expected virtual_stages= a count of at least 1, found "
        "\"virtual_stages=0\"");
  CHECK(line("full", "x,5,,recompute=none,") ==
        ":line 2: column 'flags': expected recompute=full, as column 'recompute' says, found "
        "\"recompute=none\"");
  CHECK(line("", "x,5,,,perhaps") ==
        ":line 2: column 'seen': expected fit, listed or no, found \"perhaps\"");
  CHECK(line("", "x,0,,,no") ==
        ":line 2: column 'simulator_step_time_s': expected a number above 0, found \"0\"");
}

TEST_CASE("A cut model has as many layers without experts as its line says") {
  // DeepSeek-V3 has 3 of them, and a layer that predicts a further token. Cut to 4 layers with 1,
  // it has 3 with experts.
  const std::string header =
      "run,software,family,model,layers,hidden,heads,ffn_hidden,seq_len,experts,experts_per_token,"
      "dense_layers,prediction_layers,gpu,gpus,tp,pp,ep,global_batch,step_time_s\n";
  const auto asked = [&](const std::string& experts) {
    Questions questions{{}};
    const std::string line = "one,megatron-core," + experts + ",b200-sxm,8,1,1,8,32,0.6\n";
    return questions.of(read_runs(orrery::Table::parse(header + line, "runs.csv")).front());
  };
  const auto model = [&](const std::string& layers) {
    const std::string latent = "mla-moe,V3,4,7168,128,2048,4096,256,8,";
    return std::get<models::Question>(asked(latent + layers)).model;
  };
  const auto reason = [&](const std::string& experts) {
    return std::get<Skip>(asked(experts)).reason;
  };
  CHECK(expert_layers(model(",")) == 1);
  CHECK(expert_layers(model("1,")) == 3);
  CHECK(expert_layers(model("0,")) == 4);
  CHECK(model("1,").prediction_layers == 1);
  CHECK(model("1,0").prediction_layers == 0);
  CHECK(model("1,0").parameters < model("1,").parameters);
  CHECK(reason("mla-moe,V3,4,7168,128,2048,4096,256,8,5,") == "dense_layers is above layers");
  CHECK(reason("moe,Mixtral,4,4096,32,14336,4096,8,2,1,") ==
        "dense_layers is stated for a configuration that has none");
  CHECK(reason("llama,small,4,4096,32,14336,4096,,,1,") ==
        "dense_layers and prediction_layers are stated of models with experts alone");
}

}  // namespace
}  // namespace orrery::scenarios
