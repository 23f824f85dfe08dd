#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

std::string begins(const std::string& text, const std::string& start) {
  return text.substr(0, start.size());
}

/// A scenario of one server with one member changed.
std::string scenario_with(const std::string& pointer, const Json& value) {
  Json json = Json::parse(R"({"model": "gpt2", "cluster": "dgx-a100-80gb",
                              "software": "megatron-lm", "plan": {"data": 8}})");
  json[Json::json_pointer{pointer}] = value;
  return json.dump();
}

}  // namespace

TEST_CASE("A file that is not there is refused") {
  CHECK(refused_line("simulate nowhere.json") ==
        "nowhere.json: cannot be read: No such file or directory");
}

TEST_CASE("Unknown names are refused with those that are known") {
  CHECK(begins(refused_line("simulate nothing"),
               "unknown scenario 'nothing'; known: bloom-176b-384-a100") ==
        "unknown scenario 'nothing'; known: bloom-176b-384-a100");
  const std::string model = refused_line("simulate --model gpt9 --cluster dgx-h100");
  CHECK(begins(model, "--model: unknown model 'gpt9'; known: ") ==
        "--model: unknown model 'gpt9'; known: ");
  const std::string cluster = refused_line("simulate --model gpt2 --cluster dgx-x9");
  CHECK(begins(cluster, "--cluster: unknown cluster 'dgx-x9'; known: ") ==
        "--cluster: unknown cluster 'dgx-x9'; known: ");
  const std::string software =
      refused_line("simulate --model gpt2 --cluster dgx-h100 --software magic");
  CHECK(begins(software, "--software: unknown software 'magic'; known: ") ==
        "--software: unknown software 'magic'; known: ");
}

TEST_CASE("A wrong type is told with pointer, expectation and finding") {
  const Scratch scratch;
  const std::string file =
      scratch.write("a.json", scenario_with("/plan", Json{{"tensor", "eight"}}));
  CHECK(refused_line("simulate " + file) ==
        file + ":/plan/tensor: expected an integer from 1 to 1048576, found \"eight\"");
}

TEST_CASE("An unknown key is refused with the nearest that exists") {
  const Scratch scratch;
  const std::string file = scratch.write("a.json", scenario_with("/modle", "gpt2"));
  CHECK(refused_line("simulate " + file) ==
        file +
            ":/modle: unknown key; did you mean 'model'? accepted: name, model, cluster, plan, "
            "software, tokens, published, notes, assumptions");
}

TEST_CASE("A change is one value of a flag that is repeated") {
  CHECK(refused_line("simulate --model gpt2 --cluster dgx-h100 --set /plan/data=8 /plan/zero=1") ==
        "--set: expected one POINTER=VALUE, found a second, '/plan/zero=1'; repeat the flag: --set "
        "/plan/zero=1");
  const Ran help = orrery("simulate --help");
  CHECK(help.out.find("  --set POINTER=VALUE ") != std::string::npos);
  CHECK(help.out.find("repeat the flag for more") != std::string::npos);
  CHECK(help.out.find("...") == std::string::npos);
}

TEST_CASE("A quantity without its unit is refused") {
  CHECK(refused_line("simulate gpt3-175b-1024-a100 --set /cluster/fabric/bandwidth=800") ==
        "gpt3-175b-1024-a100:/cluster/fabric/bandwidth: expected a rate such as \"450 GB/s\", "
        "found 800");
}

TEST_CASE("Tensor parallelism that does not divide the heads is refused") {
  // GPT-2 has 12 heads.
  CHECK(refused_line("simulate --model gpt2 --cluster dgx-h100 --plan tensor=8") ==
        "--plan:/tensor: tensor 8 does not divide the model's 12 attention heads");
}

TEST_CASE("More than 2^20 GPUs are refused") {
  const std::string line = refused_line("simulate --model gpt2 --cluster 'dgx-h100 x 200000'");
  CHECK(line == "--cluster:/nodes: 200000 nodes of 8 GPUs are more than 2^20 GPUs");
  const std::string plan =
      refused_line("simulate --model gpt2 --cluster dgx-h100 --plan data=1048576,pipeline=12");
  CHECK(plan == "--plan:/data: 12582912 GPUs are more than 2^20, the most that a plan may use");
}

TEST_CASE("JSON nested a hundred thousand deep is refused") {
  const Scratch scratch;
  const std::string deep(100000, '[');
  const std::string file = scratch.write("deep.json", deep);
  CHECK(refused_line("simulate " + file) == file + ": nested deeper than 256 levels");
}

TEST_CASE("A truncated file is refused") {
  const Scratch scratch;
  const std::string file = scratch.write("cut.json", R"({"model": "gpt2", "plan": {"ten)");
  CHECK(refused_line("simulate " + file) ==
        file +
            ":line 1: is not JSON: invalid string: missing closing quote; last read: '\"ten'; "
            "expected string literal");
}

TEST_CASE("A binary file is refused") {
  const Scratch scratch;
  const std::string file = scratch.write("binary.json", std::string("\x7f"
                                                                    "ELF\0\1\2\3",
                                                                    8));
  CHECK(refused_line("simulate " + file) == file + ": is binary, not text");
}

TEST_CASE("A mistake in a model's own file is told there") {
  const Scratch scratch;
  const std::string model = scratch.write(
      "tiny.json", R"({"format": "orrery-model", "layers": 0, "hidden": 64, "heads": 4,
                       "vocab": 100, "max_positions": 128})");
  CHECK(refused_line("simulate --model " + model + " --cluster dgx-h100") ==
        model + ":/layers: expected an integer from 1 to 4096, found 0");
}

TEST_CASE("Flags that do not exist, or lack a value, are refused in one line") {
  CHECK(begins(refused_line("simulate gpt-1t-512-a100 --jsn"), "The following argument") ==
        "The following argument");
  refused_line("simulate --trace");
  refused_line("frobnicate");
  refused_line("");
  CHECK(refused_line("simulate gpt-1t-512-a100 --set tensor=8") ==
        "--set: expected POINTER=VALUE, found 'tensor=8'");
  CHECK(refused_line("simulate gpt-1t-512-a100 --tokens lots") ==
        "--tokens: expected a number of tokens such as \"300B\", found 'lots'");
}

TEST_CASE("A trace that cannot be written leaves no result behind") {
  CHECK(refused_line("simulate llama3-8b-8-h100 --json --trace /nowhere/at/all.json") ==
        "/nowhere/at/all.json: cannot be written");
}

TEST_CASE("A rank that the program lacks is refused") {
  CHECK(refused_line("show program llama3-8b-8-h100 --rank 8") ==
        "--rank: expected an integer from 0 to 7, found 8");
}

}  // namespace orrery::scenarios
