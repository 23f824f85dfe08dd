// Member `data` of a scenario, from the command line: what it changes, and what it is refused for.

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "scenarios/report/result.hpp"
#include "scenarios/validation/runs/energy.hpp"
#include "scenarios/validation/runs/storage.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

const std::string image_step =
    "simulate --model gpt2-medium --cluster dgx-h100 --plan zero=1,micro_batch=4,global_batch=256 ";
std::string with_data(const std::string& members) {
  return image_step + "--set '/data={\"format\": \"jpeg-q90\", " + members + "}' ";
}

}  // namespace

// 256 samples on one node of eight GPUs: 256 x 85 kB over 1.25 GB/s (17.4 ms) are read, decoded and
// augmented at 857 / 2 a core: 256 x 2 / 857 / 4 cores = 149.4 ms; 32 of 562.5 kB go to each GPU.
TEST_CASE("orrery simulate reports the lane of a step's input, and the step waits for it") {
  const Json plain = parsed(orrery(image_step + "--json").out);
  CHECK(!plain.contains("data"));
  CHECK(!plain["breakdown"].contains("data"));
  const double alone = plain["step_time_s"];
  REQUIRE(alone < 0.5);
  const Json hidden = parsed(orrery(with_data("\"decode\": {\"cores\": 64}") + "--json").out);
  CHECK(hidden["step_time_s"] == plain["step_time_s"]);
  CHECK(hidden["data"]["hidden"] == true);
  CHECK(hidden["breakdown"]["data"] == 0);
  CHECK(hidden["bottleneck"] == plain["bottleneck"]);
  CHECK(hidden["data"]["stages"][0]["time_s"].get<double>() == Approx(256 * 85e3 / 1.25e9));
  const Json waits = parsed(orrery(with_data("\"decode\": {\"cores\": 0.5}") + "--json").out);
  const double decoding = 256 * 2 / 857.0 / 0.5;
  CHECK(waits["data"]["slowest"] == "decode");
  CHECK(waits["data"]["time_s"].get<double>() == Approx(decoding));
  CHECK(waits["step_time_s"].get<double>() == Approx(decoding));
  CHECK(waits["breakdown"]["data"].get<double>() == Approx(decoding - alone));
  CHECK(waits["bottleneck"] == "data");
  CHECK(waits["waterfall"].back()["name"] == "waiting for data");
  const std::string text = unwrapped(orrery(with_data("\"decode\": {\"cores\": 0.5}")).out);
  CHECK(text.find("of a step waiting for data") != std::string::npos);
  CHECK(text.find("decode 1.19 s (0.5 cores a node)") != std::string::npos);
  CHECK(text.find("waiting for data") != std::string::npos);
  // In the trace each stage has a track, next to the ranks'.
  const Scratch scratch;
  const std::string trace = scratch.path("step.json");
  CHECK(orrery(with_data("\"decode\": {\"cores\": 0.5}") + "--trace " + trace).exit_code == 0);
  const std::string events = scratch.read("step.json");
  CHECK(events.find("decode of a later batch") != std::string::npos);
  CHECK(events.find("the step waits") != std::string::npos);
  // What-ifs by pointer, also where the scenario states nothing of the kind.
  const std::string flags = "--set /data/format=tokens --json ";
  CHECK(parsed(orrery(image_step + flags).out)["step_time_s"] == plain["step_time_s"]);
  const Json jitter = parsed(
      orrery(with_data("\"decode\": {\"cores\": 4}, \"jitter\": {\"decode\": 1}") + "--json").out);
  CHECK(jitter["data"]["simulated_steps"] == 4096);
  CHECK(jitter["step_time_s"].get<double>() > 256 * 2 / 857.0 / 4);
}

TEST_CASE("What a scenario's data cannot be is refused where it is written") {
  const auto refused = [](const std::string& members) { return refused_line(with_data(members)); };
  CHECK(refused("\"prefetch\": 2") ==
        "command line:/data/decode/cores: missing: jpeg-q90 is decoded by 857 a core and second; "
        "state the cores of a node that decode, as in --set /data/decode/cores=16");
  CHECK(refused_line(image_step + "--set /data/format=jpg")
            .starts_with("command line:/data/format: unknown data format 'jpg'; known: tokens"));
  CHECK(refused("\"decode\": {\"cores\": 4}, \"cache\": {\"hit\": 0.5, \"share\": 0.5}")
            .starts_with("command line:/data/cache: expected either `hit`"));
  CHECK(refused("\"decode\": {\"cores\": 4}, \"store\": {\"latency\": \"1 ms\"}") ==
        "command line:/data/store/in_flight: missing: with a latency, state how many requests a "
        "node has in flight");
  CHECK(refused("\"decode\": {\"on\": \"gpu\"}").find("/data/decode/per_gpu: missing") !=
        std::string::npos);
  CHECK(refused("\"decode\": {\"cores\": 4}, \"jitter\": {\"read\": 0.05}")
            .find("0, or a deviation over the mean from 0.1 to 1") != std::string::npos);
  CHECK(refused("\"decode\": {\"cores\": 4}, \"background\": false, \"prefetch\": 2")
            .find("/data/prefetch: needs `background`: true") != std::string::npos);
  CHECK(refused("\"sores\": 1").find("/data/sores: unknown key") != std::string::npos);
  CHECK(refused_line(image_step + "--set '/data={\"format\": \"tokens\", \"pixels\": 4}'")
            .find("is for images; tokens is none") != std::string::npos);
}

TEST_CASE("orrery show data-formats lists formats with their sources") {
  const Json list = parsed(orrery("show data-formats --json").out)["data_formats"];
  CHECK(list.size() >= 12);
  const std::string one = orrery("show data-formats webp-q90").out;
  CHECK(one.find("204/s") != std::string::npos);
  CHECK(one.find("libwebp") != std::string::npos);
}

// A store of which steps read more than half and a checkpoint's write takes all: each gets half.
TEST_CASE("orrery train: steps read and checkpoints are written at one store") {
  const std::string call =
      "train llama3-8b-8-h100 --tokens 10B --samples 50 --json --set /data/format=tokens ";
  const Json none = parsed(orrery("train llama3-8b-8-h100 --tokens 10B --samples 50 --json").out);
  CHECK(!none.contains("data"));
  const Json light = parsed(orrery(call).out);
  CHECK(light["data"]["reads_slowed_by_checkpoints"] == 1);
  CHECK(light["days"]["p50"] == none["days"]["p50"]);
  // 128 sequences of 200 MB a step are 25.6 GB: 80 % of the store by its step.
  const double step = none["phases"][0]["step_time_s"];
  const double rate = 25.6e9 / (0.8 * step);
  const std::string heavy =
      call + fmt::format(
                 "--set /data/bytes='200 MB' --set /data/store/bandwidth='{} B/s' "
                 "--set /run/storage/write='1 GB/s' --set /run/checkpoint/write='112 s' ",
                 rate);
  const Json shared = parsed(orrery(heavy).out);
  // 112.4 GB in 112 s take all of 1 GB/s: 0.8 + 1 > 1, half each; reads take 1.6 times.
  CHECK(shared["data"]["reads_slowed_by_checkpoints"].get<double>() == Approx(1.6).epsilon(0.01));
  CHECK(shared["data"]["writes_slowed_by_reads"].get<double>() == Approx(2).epsilon(0.01));
  CHECK(shared["checkpoint"]["write_s"].get<double>() == Approx(224).epsilon(0.01));
  // Meanwhile a step takes 0.8 x 1.6 = 1.28 times as long.
  const double written = 224 / shared["checkpoint"]["interval_s"].get<double>();
  const double factor = 1 / (1 - std::min(1.0, written) * (1 - 1 / 1.28));
  CHECK(shared["phases"][0]["step_time_s"].get<double>() == Approx(step * factor).epsilon(0.005));
  CHECK(shared["data"]["wait_share"].get<double>() == Approx(1 - 1 / factor).epsilon(0.02));
  double sum = 0;
  for (const auto& [cause, share] : shared["ledger"].items()) sum += share.get<double>();
  CHECK(sum == Approx(1).epsilon(1e-9));
  CHECK(shared["ledger"]["input data"].get<double>() > 0);
}

// Utilisation x ideal is what a row delivers; the rest is how the benchmark counts its first and
// last batches.
TEST_CASE("MLPerf Storage v1.0: 132 results, given their utilisation and from a system's others") {
  const Table table = Table::load(std::string{ORRERY_SOURCE} + "/scenarios/validation/storage.csv");
  REQUIRE(holds_storage(table));
  const Json report = compare_storage(table).json;
  CHECK(report["rows"] == 132);
  const Json& own = report["given_utilisation"];
  INFO(own.dump());
  CHECK(own["median_abs_error_pct"].get<double>() < 1);
  CHECK(own["p90_abs_error_pct"].get<double>() < 6.5);
  CHECK(own["worst_abs_error_pct"].get<double>() < 21);
  CHECK(own["within_3_pct_of_rows"].get<double>() > 78);
  const Json& others = report["from_other_rows"];
  INFO(others.dump());
  CHECK(others["rows"].get<int>() > 95);
  CHECK(others["median_abs_error_pct"].get<double>() < 10);
  CHECK(others["p90_abs_error_pct"].get<double>() < 50);
  const std::string bad =
      "run,submitter,system,format,accelerator,accelerators,hosts,batch,compute_time_s,samples_s,"
      "au_pct,threshold_pct\na,b,c,mlperf-unet3d,h100,0,1,7,0.3,20,90,90\n";
  CHECK_THROWS_WITH(compare_storage(Table::parse(bad, "s.csv")),
                    "s.csv:line 2: column 'accelerators': expected a count above 0, found \"0\"");
}

TEST_CASE("orrery validate reads storage and energy, and refuses flags of steps with them") {
  const std::string folder = std::string{"validate "} + ORRERY_SOURCE + "/scenarios/validation/";
  CHECK(parsed(orrery(folder + "storage.csv --json").out)["kind"] == "storage");
  CHECK(parsed(orrery(folder + "energy.csv --json").out)["kind"] == "energy");
  CHECK(orrery(folder + "energy.csv").out.find("olmo3-32b") != std::string::npos);
  CHECK(refused_line(folder + "storage.csv --by system") ==
        "--by: expected a file of training steps");
}

TEST_CASE("Energy that somebody measured, with the hours that were published") {
  const Table table = Table::load(std::string{ORRERY_SOURCE} + "/scenarios/validation/energy.csv");
  REQUIRE(holds_energy(table));
  const EnergyReport report = compare_energy(table, {.threads = 2, .progress = {}});
  INFO(report.text);
  CHECK(report.json["scored"] == 3);
  CHECK(report.json["worst_abs_error_pct"].get<double>() < 15);
  // Where hours are not published, the measured energy takes hours beyond steps as published runs
  // needed, and even at the board power more than those of steps.
  for (const Json& each : report.json["runs"]) {
    INFO(each.dump());
    CHECK(each["like_published_runs"] == true);
    if (each["scored"] == true) continue;
    CHECK(each["hours_over_steps"].get<double>() ==
          Approx(each["measured_mwh"].get<double>() / each["predicted_mwh"].get<double>()));
    CHECK(each["least_hours_over_steps"].get<double>() < each["hours_over_steps"].get<double>());
    CHECK(each["least_hours_over_steps"].get<double>() > 1.1);
  }
}

// 2 x 500 a core and second for a picture of twice the pixels; eight cores read one at a time.
TEST_CASE("What calibrate measured of storage and decoding is what a step's data takes") {
  const Scratch scratch;
  Json cluster{{"node", "dgx-h100"},
               {"nodes", 1},
               {"storage", {{"read", "2 GB/s"}, {"random_read", "5 ms"}}},
               {"decoding",
                {{{"format", "jpeg-q90"}, {"per_core", 500}, {"pixels", 375'000}},
                 {{"format", "text-bytes"}, {"per_core", 1e6}}}}};
  const std::string file = scratch.write("mine.json", cluster.dump());
  const std::string step = "simulate --model gpt2-medium --cluster " + file +
                           " --plan zero=1,micro_batch=4,global_batch=256 --json ";
  const Json jpeg =
      parsed(orrery(step + "--set '/data={\"format\":\"jpeg-q90\",\"decode\":{\"cores\":8},"
                           "\"augment\":0}'")
                 .out);
  const auto stage = [](const Json& json, const char* name) {
    for (const Json& each : json["data"]["stages"]) {
      if (each["name"] == name) return each["time_s"].get<double>();
    }
    return 0.0;
  };
  CHECK(stage(jpeg, "decode") == Approx(256 / 1000.0 / 8));
  CHECK(jpeg["data"]["read_limited_by"] == "latency");
  CHECK(stage(jpeg, "read") == Approx(256 * 5e-3 / 8));
  // Text is read in order, by one thread: 256 x 1,024 bytes over 2 GB/s, a million tokens a second.
  const Json text = parsed(orrery(step + "--set /data/format=text-bytes").out);
  CHECK(stage(text, "read") == Approx(256 * 1024 / 2e9).epsilon(1e-6));
  CHECK(stage(text, "decode") == Approx(256 * 1024 / 1e6));
  // What a scenario states stands.
  const Json stated = parsed(orrery(step + "--set '/data={\"format\":\"jpeg-q90\",\"augment\":0,"
                                           "\"decode\":{\"cores\":8,\"per_core\":100},"
                                           "\"store\":{\"bandwidth\":\"10 GB/s\"}}'")
                                 .out);
  CHECK(stage(stated, "decode") == Approx(256 / 100.0 / 8));
  CHECK(stated["data"]["read_limited_by"] == "bandwidth");
  cluster["decoding"][0]["format"] = "jpg";
  scratch.write("mine.json", cluster.dump());
  CHECK(refused_line("simulate --model gpt2-medium --cluster " + file +
                     " --plan zero=1,micro_batch=4,global_batch=256 --set /data/format=tokens") ==
        "/cluster/decoding: unknown data format 'jpg'");
}

// A thousand steps' worth: a GPU-hour at $2 is the cluster's cost of a step by its price.
TEST_CASE("orrery simulate pays what the run states, as orrery train does") {
  const std::string step = "simulate llama3-8b-8-h100 --json ";
  const auto cost = [&](const std::string& flags) {
    return parsed(orrery(step + flags).out)["cost_usd_per_step"].get<double>();
  };
  const double seconds = parsed(orrery(step).out)["step_time_s"].get<double>();
  CHECK(cost("--set /run/price='$2/h'") == Approx(8 * 2 * seconds / 3600));
  CHECK(cost("--set /run/price='$4/h' --set /cluster/price_per_gpu_hour='$1/h'") ==
        Approx(8 * 4 * seconds / 3600));
  // $49,248 and the other defaults: what train pays an hour.
  const Json owned = parsed(
      orrery("train llama3-8b-8-h100 --tokens 1B --samples 20 --set /run/own={} --json").out);
  CHECK(cost("--set /run/own={}") ==
        Approx(8 * owned["price"]["usd_per_gpu_hour"].get<double>() * seconds / 3600));
  CHECK(orrery("simulate llama3-8b-8-h100 --set /run/price='$2/h'").out.find("/run/price") !=
        std::string::npos);
  CHECK(refused_line("simulate llama3-8b-8-h100 --set /run/price='$-2/h'").find("/run/price: ") !=
        std::string::npos);
}

}  // namespace orrery::scenarios
