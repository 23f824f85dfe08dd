// Counted routing: what it makes of a plan, and what is wrong with a file.

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/plan/expert_counts.hpp"
#include "sim/errors.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

std::string problem(const std::string& text, const std::string& name) {
  try {
    parse_expert_counts(text, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("Of each layer the busiest rank's tokens count over the mean") {
  // Four experts on two ranks. First layer 60 + 20 against 10 + 10: 80 of 100 is 1.6 of half.
  // Second 30 + 20 against 25 + 25: even. On four ranks 60 of 100 is 2.4, 30 of 100 is 1.2.
  for (const auto& [text, name] : {std::pair{"60, 20, 10, 10\n\n30,20,25,25\n", "counts.csv"},
                                   std::pair{"[[60, 20, 10, 10], [30, 20, 25, 25]]", "c.json"}}) {
    const ExpertCounts counts = parse_expert_counts(text, name);
    CHECK(counts.experts() == 4);
    CHECK(counts.imbalances(2) == std::vector{1.6, 1.0});
    CHECK(counts.imbalances(4) == std::vector{2.4, 1.2});
    CHECK(counts.imbalances(1) == std::vector{1.0, 1.0});
  }
  CHECK(parse_expert_counts("[1, 3]", "one.json").imbalances(2) == std::vector{1.5});
}

TEST_CASE("A file of counts that is wrong says where and what is wanted") {
  CHECK(problem("1,2\n1,2,3\n", "c.csv") ==
        "c.csv:line 2: expected counts of 2 experts as in the layer before, found 3");
  CHECK(problem("1,many\n", "c.csv") ==
        "c.csv:line 1: expected a count of tokens for each expert, found 'many'");
  CHECK(problem("1,\n", "c.csv") ==
        "c.csv:line 1: expected a count of tokens for each expert, found ''");
  CHECK(problem("4\n0\n", "c.csv") ==
        "c.csv:line 2: expected tokens on at least one expert, found none");
  CHECK(problem("\n", "c.csv") == "c.csv: expected a line of counts for each layer, found none");
  CHECK(problem("[[1, -2]]", "c.json").rfind("c.json:/0/1: expected an integer from 0", 0) == 0);
  CHECK(problem("[[1], 2]", "c.json").rfind("c.json:/1: expected a list of counts", 0) == 0);
  CHECK(problem("{}", "c.json").find("expected a list of counts") != std::string::npos);
}

/// Files that live as long as a test.
class CountFiles {
 public:
  CountFiles() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~CountFiles() { std::filesystem::remove_all(folder_); }
  CountFiles(const CountFiles&) = delete;
  CountFiles& operator=(const CountFiles&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{folder_ / name, std::ios::binary} << text;
    return (folder_ / name).string();
  }

 private:
  std::filesystem::path folder_;
};

/// The plan's imbalance for Mixtral (8 experts on 32 layers), or what is wrong.
std::string read(const std::string& given, const std::string& expert,
                 std::vector<std::string>* assumed = nullptr) {
  try {
    const Question asked =
        question("mixtral-8x7b", "dgx-h100",
                 "seq_len=4096,global_batch=8,expert=" + expert + ",imbalance=" + given);
    if (assumed != nullptr) *assumed = asked.assumptions;
    return std::to_string(asked.plan.experts.imbalance);
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST_CASE("A plan takes its imbalance from counted tokens, for its ranks of experts") {
  const CountFiles files;
  const std::string file = files.write("counts.csv", "40,0,10,10,10,10,10,10\n");
  CHECK(read(file, "8") == "3.200000");  // 40 of 100 over an eighth
  CHECK(read(file, "2") == "1.200000");  // 60 of 100 over a half
  CHECK(read(file, "1") == "1.000000");
  std::vector<std::string> assumed;
  read(file, "8", &assumed);
  const auto said = std::find_if(assumed.begin(), assumed.end(), [](const std::string& each) {
    return each.rfind("plan:/imbalance", 0) == 0 || each.rfind("/imbalance", 0) == 0;
  });
  REQUIRE(said != assumed.end());
  CHECK(
      said->find("3.2: rows of the busiest of 8 ranks over the mean, equal in every layer, from " +
                 file) != std::string::npos);
}

TEST_CASE("Counts of another model, and words that are no file, are refused by the plan") {
  const CountFiles files;
  const std::string four = files.write("four.csv", "1,1,1,1\n");
  const std::string two_layers = files.write("two.csv", "1,1,1,1,1,1,1,1\n1,1,1,1,1,1,1,1\n");
  CHECK(read(four, "4").find("/imbalance: ") != std::string::npos);
  CHECK(read(four, "4").find("counts 4 experts, the model has 8") != std::string::npos);
  CHECK(read(four, "8").find("expert 8 does not divide the 4 experts") != std::string::npos);
  CHECK(read(two_layers, "8").find("counts 2 layers, the model has 32") != std::string::npos);
  CHECK(read("1.5:1.2", "8")
            .find("/imbalance: has 2 numbers, the model has 32 layers with experts") !=
        std::string::npos);
  CHECK(read("uneven", "8").find("expected a number from 1, or a file of counted tokens") !=
        std::string::npos);
  CHECK(read("no/such.csv", "8").find("no/such.csv: cannot be read") != std::string::npos);
}

}  // namespace
}  // namespace orrery::models
