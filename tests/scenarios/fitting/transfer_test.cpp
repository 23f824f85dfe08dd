// Numbers that a stack has from its relatives and from a few of its steps.

#include "scenarios/fitting/profile/transfer.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/fitting/profile/number_prior.hpp"
#include "scenarios/fitting/profile/posterior.hpp"
#include "scenarios/fitting/profile/stack_fit.hpp"
#include "scenarios/validation/validation.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

models::Software profile_named(const std::string& name) {
  return models::read_software(Document::from(models::software_profile(name), name).root());
}

std::size_t number_at(const std::string& pointer) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < profile_numbers().size(); ++i) {
    if (profile_numbers()[i].pointer == pointer) found = i;
  }
  return found;
}

/// Independent rows of one cell.
LinearRows rows_with(const std::vector<double>& errors, const Eigen::MatrixXd& slopes) {
  const auto count = static_cast<Eigen::Index>(errors.size());
  return {.errors = Eigen::Map<const Eigen::VectorXd>(errors.data(), count),
          .slopes = slopes,
          .cells = Eigen::MatrixXd::Ones(count, 1),
          .weights = Eigen::VectorXd::Ones(count)};
}

TEST_CASE("One step is shared out between a number, its site and chance by their variances") {
  // A step 5 % slower than predicted; the number moves it one to one and is known to 0.04. Of
  // 0.04^2 + 0.10^2 + 0.06^2 = 0.0152 the number has 0.0016, the site 0.01:
  //   0.05 x 0.0016 / 0.0152 = 0.00526,  0.05 x 0.01 / 0.0152 = 0.0329
  // and 0.04^2 - 0.0016^2 / 0.0152 = 0.00143 is left of the number's variance.
  const LinearRows one = rows_with({0.05}, Eigen::MatrixXd::Ones(1, 1));
  const Posterior found = posterior_of(one, Eigen::VectorXd::Constant(1, 0.04));
  CHECK(found.moves[0] == Approx(0.05 * 0.0016 / 0.0152));
  CHECK(found.factors[0] == Approx(0.05 * 0.01 / 0.0152));
  CHECK(found.spread(0) == Approx(std::sqrt(0.0016 - 0.0016 * 0.0016 / 0.0152)));
}

TEST_CASE("A number that no row depends on stays where it was, as uncertain as before") {
  LinearRows rows = rows_with({0.05, 0.06}, Eigen::MatrixXd{{1, 0}, {1, 0}});
  rows.cells = Eigen::MatrixXd::Identity(2, 2);
  const Posterior found = posterior_of(rows, Eigen::VectorXd{{0.04, 0.3}});
  CHECK(found.moves[1] == 0);
  CHECK(found.spread(1) == Approx(0.3));
}

TEST_CASE("Two rows of half the weight count as one") {
  const Eigen::VectorXd spreads = Eigen::VectorXd::Constant(1, 0.04);
  const Posterior one = posterior_of(rows_with({0.05}, Eigen::MatrixXd::Ones(1, 1)), spreads);
  LinearRows twice = rows_with({0.05, 0.05}, Eigen::MatrixXd::Ones(2, 1));
  twice.weights *= 0.5;
  const Posterior same = posterior_of(twice, spreads);
  CHECK(same.moves[0] == Approx(one.moves[0]));
  CHECK(same.spread(0) == Approx(one.spread(0)));
  CHECK(misfit(same, twice, spreads) ==
        Approx(misfit(one, rows_with({0.05}, Eigen::MatrixXd::Ones(1, 1)), spreads)));
}

TEST_CASE("A row that is far off pulls by its distance, not by its square") {
  // Ten rows agree and one is a hundred times longer: ln 100 = 4.6.
  std::vector<double> errors(10, 0.0);
  errors.push_back(std::log(100.0));
  const LinearRows rows = rows_with(errors, Eigen::MatrixXd::Ones(11, 1));
  CHECK(std::abs(posterior_of(rows, Eigen::VectorXd::Constant(1, 0.04)).moves[0]) < 0.01);
}

TEST_CASE("A stack's number before any run lies between the usual one and its relatives'") {
  // Of one lineage and year: weight 0.5, as of the usual 1.3. In logarithms
  //   (0.5 ln 1.3 + 0.5 ln 2.6) / 1 = ln 1.3 + ln 2 / 2
  models::Software stack, relative;
  stack.name = "a";
  relative.name = "b";
  stack.lineage = relative.lineage = "one";
  stack.year = relative.year = 2024;
  relative.kernels.memory_derate = 2.6;
  stack.kernels.gemm_derate["default"] = relative.kernels.gemm_derate["default"] = 1;
  const std::size_t memory = number_at("/kernels/memory_derate");
  const std::vector<Relative> relatives{{&relative, coordinates_of(relative)}};
  CHECK(prior_of(stack, relatives)[memory] == Approx(std::log(1.3) + std::log(2.0) / 2));
  // Three years apart it weighs half: (0.5 ln 1.3 + 0.25 ln 2.6) / 0.75.
  relative.year = 2021;
  CHECK(prior_of(stack, relatives)[memory] == Approx(std::log(1.3) + std::log(2.0) / 3));
  CHECK(prior_of(stack, {})[memory] == Approx(std::log(1.3)));
}

TEST_CASE("What tensor parallelism exposes is no evidence for a stack that overlaps nothing") {
  models::Software stack, relative;
  stack.name = "a";
  relative.name = "b";
  stack.lineage = relative.lineage = "one";
  stack.year = relative.year = 2024;
  stack.runs.tensor = relative.runs.tensor = true;
  stack.kernels.gemm_derate["default"] = relative.kernels.gemm_derate["default"] = 1;
  relative.overlap.tensor_exposed = 0.25;
  relative.kernels.memory_derate = 2.6;
  const std::size_t exposed = number_at("/overlap/tensor_exposed");
  const std::size_t memory = number_at("/kernels/memory_derate");
  stack.overlap.tensor_backward = relative.overlap.tensor_backward = true;
  const std::vector<Relative> relatives{{&relative, coordinates_of(relative)}};
  CHECK(prior_of(stack, relatives)[exposed] == Approx(std::log(0.25) / 2));
  stack.overlap.tensor_backward = false;
  CHECK(prior_of(stack, relatives)[exposed] == 0);
  CHECK(prior_of(stack, relatives)[memory] > std::log(1.3));
}

TEST_CASE("A table of runs that are all reported apart is about those, others set them aside") {
  const std::string head =
      "run,software,family,model,layers,hidden,heads,seq_len,gpu,gpus,tp,pp,global_batch,"
      "step_time_s,reported_apart\n";
  const auto row = [](const char* model, int layers, double time, const char* apart) {
    return fmt::format(
        "{0}{1},megatron-lm,gpt,{0},{1},2304,24,2048,a100-sxm-80gb,8,1,1,64,{2},{3}\n", model,
        layers, time, apart);
  };
  const std::string apart = row("a", 24, 4.0, recurrent_runs) + row("b", 12, 2.1, recurrent_runs);
  const auto scored = [](const std::string& text) {
    const Table table = Table::parse(text, "runs.csv");
    return transfers_of(table, {"model"}, 1, 0).front();
  };
  CHECK(scored(head + apart).rows.size() == 2);
  CHECK(scored(head + apart).held.empty());
  const Transfer mixed = scored(head + apart + row("c", 24, 4.0, "") + row("d", 12, 2.1, ""));
  CHECK(mixed.rows.size() == 2);
  CHECK(mixed.held.empty());
}

TEST_CASE("Half of what one cell leaves is its stack's, more of what several leave") {
  // Medians 0.1; and 0.1 and 0.3, of which two thirds of the mean 0.2.
  CHECK(left_to_stack({0.05, 0.1, 0.9}, {4, 4, 4}) == Approx(0.05));
  CHECK(left_to_stack({0.1, 0.3, 0.1, 0.1}, {4, 7, 4, 4}) == Approx(0.4 / 3));
  CHECK(left_to_stack({0.1, -0.1}, {0, 1}) == Approx(0).margin(1e-12));
}

TEST_CASE("Profiles of one line are a family, those that share code a lineage") {
  CHECK(kinship_of(profile_named("nemo"), profile_named("megatron-bridge")) == Kinship::family);
  CHECK(kinship_of(profile_named("megatron-lm"), profile_named("nemo")) == Kinship::lineage);
  CHECK(kinship_of(profile_named("megatron-lm"), profile_named("nanotron")) == Kinship::none);
  CHECK(kinship_of(profile_named("internevo"), profile_named("nanotron")) == Kinship::lineage);
}

TEST_CASE("A number that an era changes keeps what the era changed") {
  models::Software base = profile_named("megatron-core"), then = base;
  then.overlap.tensor_exposed = 3 * base.overlap.tensor_exposed;
  const Eigen::VectorXd from = coordinates_of(base);
  Eigen::VectorXd to = from;
  to[number_at("/overlap/tensor_exposed")] += std::log(1.5);
  CHECK(with_moved(then, from, to).overlap.tensor_exposed ==
        Approx(4.5 * base.overlap.tensor_exposed));
  CHECK(with_moved(then, from, from).overlap.tensor_exposed == then.overlap.tensor_exposed);
}

/// Two models of megatron-lm and one of nanotron; the last column is a step time.
orrery::Table table_with(double of_first_model, double of_second = 6.5) {
  const std::string header =
      "run,source,software,software_year,task,family,model,layers,hidden,heads,seq_len,gpu,gpus,"
      "gpus_per_node,tp,pp,dp,zero_stage,recompute,precision,micro_batch,global_batch,"
      "step_time_s\n";
  const auto row = [](const std::string& run, const std::string& stack, int year, int hidden,
                      double time) {
    return fmt::format(
        "{},paper {},{},{},pretrain,gpt,h{},24,{},32,2048,a100-sxm-80gb,8,8,2,1,4,0,none,fp16,2,64,"
        "{}\n",
        run, hidden, stack, year, hidden, hidden, time);
  };
  return orrery::Table::parse(header + row("a", "megatron-lm", 2021, 4096, of_first_model) +
                                  row("b", "megatron-lm", 2021, 6144, of_second) +
                                  row("c", "nanotron", 2024, 6144, 5.5),
                              "runs.csv");
}

double predicted(const Transfer& transfer, std::size_t row, double measured) {
  return measured * std::exp(transfer.rows.at(row).left_out);
}

TEST_CASE("What is left out does not reach its own prediction, and reaches others") {
  const Transfer one = transfers_of(table_with(3.0), {"source"}, 1).front();
  const Transfer other = transfers_of(table_with(3.6), {"source"}, 1).front();
  REQUIRE(one.rows.size() == 3);
  CHECK(one.groups == 2);
  CHECK(predicted(one, 0, 3.0) == Approx(predicted(other, 0, 3.6)).epsilon(1e-9));
  // Its stack's other run is fitted to it.
  CHECK(predicted(one, 1, 6.5) < predicted(other, 1, 6.5));
  CHECK(one.rows[0].seen);
}

TEST_CASE("A run of one's own moves the prediction of the group's others, and is not scored") {
  // The second of the two runs of megatron-lm is known; nanotron's group is too small.
  const auto own = [](double second) {
    return transfers_of(table_with(3.0, second), {"software"}, 1, 1).front();
  };
  const Transfer quick = own(6.5), slow = own(7.5);
  REQUIRE(quick.rows.size() == 1);
  CHECK(quick.rows[0].row == 0);
  CHECK(predicted(quick, 0, 3.0) < predicted(slow, 0, 3.0));
  CHECK_THROWS_WITH(transfers_of(table_with(3.0), {"software"}, 1, 2),
                    "runs.csv: no group has more than 2 runs");
}

TEST_CASE("A stack that is left out whole has its switches and its relatives' numbers") {
  const Transfer transfer = transfers_of(table_with(3.0), {"software"}, 1).front();
  CHECK_FALSE(transfer.rows[0].seen);
  CHECK(transfer.rows[0].profile == "megatron-lm");
  const Transfer other = transfers_of(table_with(3.6), {"software"}, 1).front();
  CHECK(predicted(transfer, 0, 3.0) == Approx(predicted(other, 0, 3.6)).epsilon(1e-9));
  CHECK(predicted(transfer, 1, 6.5) == Approx(predicted(other, 1, 6.5)).epsilon(1e-9));
}

TEST_CASE("A run of a strategy reported separately is fitted to where its group is not left out") {
  const auto with_adapters = [](double measured) {
    return orrery::Table::parse(
        "run,source,software,software_year,task,family,model,layers,hidden,heads,ffn_hidden,seq_"
        "len,"
        "gpu,gpus,gpus_per_node,tp,pp,dp,zero_stage,recompute,precision,micro_batch,global_batch,"
        "step_time_s\n"
        "a,x,nemo,2025,pretrain,llama,h,32,4096,32,14336,4096,h100-sxm-80gb,8,8,2,1,4,1,none,bf16,"
        "1,"
        "32,2\n"
        "b,x,nemo,2025,pretrain,llama,i,32,5120,40,14336,4096,h100-sxm-80gb,8,8,2,1,4,1,none,bf16,"
        "1,"
        "32,3\n" +
            fmt::format(
                "c,x,nemo,2025,lora,llama,i,32,5120,40,14336,4096,h100-sxm-80gb,8,8,2,1,4,1,"
                "none,bf16,1,32,{}\n",
                measured),
        "runs.csv");
  };
  const Transfer one = transfers_of(with_adapters(1.5), {"model,gpu"}, 1).front();
  const Transfer other = transfers_of(with_adapters(1.8), {"model,gpu"}, 1).front();
  REQUIRE(one.held.size() == 1);
  CHECK(one.held[0].apart == "LoRA");
  CHECK(one.held[0].group == "i, h100-sxm-80gb");
  CHECK(one.groups == 2);
  REQUIRE(one.rows.size() == 2);
  CHECK(predicted(one, 0, 2.0) < predicted(other, 0, 2.0));
  // Of the same model and GPU as the run with adapters.
  CHECK(predicted(one, 1, 3.0) == predicted(other, 1, 3.0));
  CHECK(1.5 * std::exp(one.held[0].left_out) == Approx(1.8 * std::exp(other.held[0].left_out)));
}

TEST_CASE("validate --leave-out answers for a column, and names one that is not there") {
  const Scratch scratch;
  const std::string file = scratch.write(
      "runs.csv",
      "run,software,family,model,layers,hidden,heads,seq_len,gpu,gpus,tp,pp,global_batch,"
      "step_time_s\nx,megatron-lm,gpt,1.7B,24,2304,24,2048,a100-sxm-80gb,8,1,1,64,4.0\n");
  const Ran ran = orrery("validate " + file + " --leave-out gpu --json");
  REQUIRE(ran.exit_code == 0);
  const Json json = Json::parse(ran.out);
  CHECK(json["leave_out"] == "gpu");
  CHECK(json["scored"] == 1);
  CHECK(json["runs"][0]["group"] == "a100-sxm-80gb");
  const Ran unknown = orrery("validate " + file + " --leave-out colour");
  CHECK(unknown.exit_code == 2);
  CHECK(unknown.error == "--leave-out: unknown column 'colour' in " + file + "\n");
  const Json sizes = Json::parse(orrery("validate " + file + " --leave-out size --json").out);
  CHECK(sizes["runs"][0]["group"] == "to 3B");
  CHECK(orrery("validate " + file + " --leave-out ''").error == "--leave-out: expected a column\n");
}

}  // namespace
}  // namespace orrery::scenarios
