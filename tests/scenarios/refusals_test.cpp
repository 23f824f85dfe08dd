#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "hardware/catalogue.hpp"
#include "models/software/software.hpp"
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
               "unknown scenario 'nothing'; known: bert-dp2 bird-eye-view-32-a100") ==
        "unknown scenario 'nothing'; known: bert-dp2 bird-eye-view-32-a100");
  const std::string model = refused_line("simulate --model gpt9 --cluster dgx-h100");
  CHECK(begins(model, "--model: unknown model 'gpt9' (did you mean 'gpt2'?); known: ") ==
        "--model: unknown model 'gpt9' (did you mean 'gpt2'?); known: ");
  const std::string cluster = refused_line("simulate --model gpt2 --cluster dgx-x9");
  CHECK(begins(cluster, "--cluster: unknown cluster 'dgx-x9' (did you mean 'dgx-2'?); known: ") ==
        "--cluster: unknown cluster 'dgx-x9' (did you mean 'dgx-2'?); known: ");
  const std::string software =
      refused_line("simulate --model gpt2 --cluster dgx-h100 --software magic");
  CHECK(begins(software, "--software: unknown software 'magic'; known: ") ==
        "--software: unknown software 'magic'; known: ");
}

TEST_CASE("An error with more names than a line shows says how many they are; its JSON has them") {
  const Scratch scratch;
  const std::string path = scratch.write("lama.json", R"({"model_type": "lama"})");
  const std::string refused = refused_line("show models " + path);
  CHECK_THAT(refused, Catch::Contains("unknown model type 'lama' (did you mean 'llama'?); ") &&
                          Catch::EndsWith(" are known, which --json lists"));
  CHECK(refused.size() < 300);
  const Ran ran = orrery("show models " + path + " --json");
  CHECK_THAT(parsed(ran.out)["error"]["accepted"].get<std::string>(), Catch::Contains("zamba2"));
}

TEST_CASE("A wrong type is reported with pointer, expectation and finding") {
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
            "software, tokens, published, notes, assumptions, unpriced, network, placement, "
            "perturbations, jobs, collectives, run, data");
}

TEST_CASE("A change is one value of a flag that is repeated") {
  CHECK(refused_line("simulate --model gpt2 --cluster dgx-h100 --set /plan/data=8 /plan/zero=1") ==
        "--set: expected one POINTER=VALUE, found a second, '/plan/zero=1'; repeat the flag: --set "
        "/plan/zero=1");
  const Ran help = orrery("simulate --help");
  CHECK(help.out.find("  --set POINTER=VALUE ") != std::string::npos);
  CHECK(help.out.find("repeat the flag for more") != std::string::npos);
  CHECK(help.out.find("TEXT ...") == std::string::npos);
  CHECK(refused_line("simulate llama3-8b-8-h100 --set /plan/data=4 /plan/zero=1") ==
        "--set: expected one POINTER=VALUE, found a second, '/plan/zero=1'; repeat the flag: --set "
        "/plan/zero=1");
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

TEST_CASE("A mistake in a model's own file is reported there") {
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
  CHECK(refused_line("simulate gpt-1t-512-a100 --set tensor=8") ==
        "--set: expected POINTER=VALUE, found 'tensor=8'");
  CHECK(refused_line("simulate gpt-1t-512-a100 --tokens lots") ==
        "--tokens: expected a number of tokens above 0, at most 1e18, such as \"300B\", found "
        "'lots'");
}

TEST_CASE("A rank that the program lacks is refused") {
  CHECK(refused_line("show program llama3-8b-8-h100 --rank 8") ==
        "--rank: expected an integer from 0 to 7, found 8");
}

TEST_CASE("Times that are none are refused") {
  for (const std::string value : {"inf", "nan", "-5", "0", "1e30"}) {
    for (const std::string flag : {"--deadline", "--stall"}) {
      const std::string found = value == "1e30" ? "1e+30" : value;
      CHECK(refused_line("execute gpt-1rank " + flag + "=" + value) ==
            flag + ": expected a number of seconds above 0 and at most 31536000, found " + found);
    }
  }
}

TEST_CASE("Devices, and pipes without a writer, are refused wherever a file is read") {
  const Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string reader : {"simulate --cluster dgx-h100 --model ", "validate ",
                                   "compare x ", "calibrate --import ", "fit curves --from "}) {
    const std::string first = reader == "compare x " ? "compare " + pipe + " " : reader;
    const Ran waited = orrery(first + pipe);
    CHECK(waited.exit_code == 2);
    CHECK(waited.error == pipe + ": is a pipe without a writer; expected a file\n");
    CHECK(waited.seconds < (slow_build ? 20 : 5));  // half a second for a writer to come
    if (reader == first) {
      CHECK(refused_line(reader + "/dev/zero") == "/dev/zero: is a device; expected a file");
    }
  }
  const Ran ran = orrery("execute gpt-1rank --data /dev/zero");
  CHECK(ran.exit_code == 2);
  CHECK(ran.error.find("/dev/zero: is a device; expected a file (the input is wrong)\n") !=
        std::string::npos);
}

TEST_CASE("A pipe that is written to is read, also when the writer is late") {
  const Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer{[&] {
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
    std::ofstream{pipe} << scenario_with("/plan/zero", 1);
  }};
  const Ran ran = orrery("simulate " + pipe);
  writer.join();
  CHECK(ran.exit_code == 0);
}

TEST_CASE("A mistake in a profile that a cluster brings along is reported where it stands") {
  const Scratch scratch;
  Json cluster = hardware::Catalogue::cluster("dgx-h100");
  cluster["software"] = models::software_profile("orrery-cpu");
  cluster["software"]["host"]["forward_launch"] = "soon";
  const std::string file = scratch.write("machine.json", cluster.dump());
  const std::string problem =
      "/software/host/forward_launch: expected a time such as \"3.5 us\", found \"soon\"";
  CHECK(refused_line("simulate --model gpt2 --cluster " + file) == file + ":" + problem);
  CHECK(refused_line("simulate --model gpt2 --cluster " + file + " --software orrery-cpu") ==
        file + ":" + problem);
  const std::string inside = scratch.write("inside.json", scenario_with("/cluster", cluster));
  CHECK(refused_line("simulate " + inside + " --software orrery-cpu") ==
        inside + ":/cluster" + problem);
}

TEST_CASE("A long word is cut, wherever it comes from") {
  const std::string word(3000, 'x');
  for (const std::string& arguments :
       {"simulate --model " + word + " --cluster dgx-h100", "simulate " + word,
        "simulate gpt-1t-512-a100 --tokens " + word, "frobnicate" + word,
        "simulate gpt-1t-512-a100 --plan " + word, "execute gpt-1rank --fabric " + word,
        "validate " + word, "show gpus " + word}) {
    CHECK(refused_line(arguments).size() < 1500);
  }
}

TEST_CASE("A file to train on that is empty is named") {
  const Scratch scratch;
  const std::string empty = scratch.write("empty.txt", "");
  const Ran ran = orrery("execute gpt-1rank --data " + empty);
  CHECK(ran.exit_code == 2);
  CHECK(
      ran.error.find(empty + ": expected text to train on, found no bytes (the input is wrong)") !=
      std::string::npos);
}

TEST_CASE("More micro-batches than a step may have are refused, soon") {
  CHECK(refused_line("simulate --model gpt2 --cluster dgx-h100 --plan global_batch=16777216") ==
        "--plan:/global_batch: 2097152 micro-batches of a replica are more than 65536; raise "
        "micro_batch or data");
}

TEST_CASE("Numbers that lead beyond what is counted are refused, not wrapped") {
  const std::string huge =
      refused_line("simulate --model llama3-8b --cluster dgx-h100 --plan seq_len=67108864");
  CHECK(huge ==
        "one rank's FLOPs in a step are above 2^63, the largest number that can be counted; use a "
        "smaller model, batch or sequence, or higher rates");
  CHECK(refused_line("simulate gpt-1t-512-a100 --tokens 1e300T") ==
        "--tokens: expected a number of tokens above 0, at most 1e18, such as \"300B\", found "
        "'1e300T'");
}

TEST_CASE("A mistake in a plan's own file is reported there, though --set changes another value") {
  const Scratch scratch;
  const std::string plan = scratch.write("p.json", R"({"tensor": "two"})");
  const std::string asked = "simulate --model gpt2 --cluster dgx-a100-80gb --plan " + plan;
  const std::string there = plan + ":/tensor: expected an integer from 1 to 1048576, found \"two\"";
  CHECK(refused_line(asked) == there);
  CHECK(refused_line(asked + " --set /plan/zero=1") == there);
  CHECK(refused_line(asked + " --set /plan/tensor=none") ==
        "command line:/plan/tensor: expected an integer from 1 to 1048576, found \"none\"");
}

TEST_CASE("What contention sets itself is refused with its file and its pointer") {
  const Scratch scratch;
  Json json = Json::parse(scenario_with("/cluster", "dgx-a100-80gb x 2"));
  json["placement"] = {{"scattered", 3}};
  const std::string file = scratch.write("placed.json", json.dump());
  const Ran ran = orrery("contention " + file + " --json");
  CHECK(ran.exit_code == 2);
  const Json error = parsed(ran.out).at("error");
  CHECK(error.at("file") == file);
  CHECK(error.at("pointer") == "/placement");
}

TEST_CASE("A seed below zero is refused, not wrapped") {
  for (const char* command : {"execute llama3-8b-8-h100", "calibrate"}) {
    CHECK(begins(refused_line(std::string{command} + " --seed -1"),
                 "--seed: expected a whole number from 0 to 18446744073709551615, found '-1'") ==
          "--seed: expected a whole number from 0 to 18446744073709551615, found '-1'");
  }
}

TEST_CASE("A file of runs without a row is refused") {
  const Scratch scratch;
  const std::string file =
      scratch.write("none.csv", "id,source,collective,gpu,gpus,nodes,link,bytes,time_us\n");
  CHECK(refused_line("validate " + file) == file + ": has a header and no rows below it");
}

TEST_CASE("A row with a huge size is skipped with its reason") {
  const Scratch scratch;
  std::ifstream runs{std::string{ORRERY_SOURCE} + "/scenarios/validation/runs.csv"};
  std::string header, row;
  std::getline(runs, header);
  std::getline(runs, row);
  const auto column = [&](const std::string& name) {
    const std::string columns = "," + header + ",";
    const std::size_t at = columns.find("," + name + ",");
    REQUIRE(at != std::string::npos);
    return std::count(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(at), ',');
  };
  std::string text = header + "\n" + row + "\n";
  for (const char* name : {"layers", "hidden", "heads", "seq_len", "gpus", "global_batch"}) {
    std::istringstream cells{row};
    std::string changed;
    std::size_t index = 0;
    for (std::string cell; std::getline(cells, cell, ','); ++index) {
      const bool here = index == static_cast<std::size_t>(column(name));
      changed += (index > 0 ? "," : "") + (here ? std::string{"9223372036854775807"} : cell);
    }
    if (row.back() == ',') changed += ",";
    text += changed + "\n";
  }
  const Ran ran = orrery("validate --json " + scratch.write("runs.csv", text));
  INFO(ran.error);
  CHECK(ran.exit_code == 0);
  const Json json = parsed(ran.out);
  CHECK(json["simulated"] == 1);
  REQUIRE(json["skipped"].size() == 6);
  CHECK(json["skipped"][0]["reason"] == "layers 9223372036854775807 is above 4096");
  CHECK(json["skipped"][3]["reason"] == "seq_len 9223372036854775807 is above 1073741824");
}

}  // namespace orrery::scenarios
