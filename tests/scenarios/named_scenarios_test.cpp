// What the shipped scenarios that ask a question claim in their notes, with numbers by hand.

#include <catch2/catch.hpp>
#include <cmath>

#include "scenarios/scenario/scenario.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

Json trained(const std::string& arguments) {
  return parsed(orrery("train " + arguments + " --samples 200 --json").out);
}
Json stepped(const std::string& arguments) {
  return parsed(orrery("simulate " + arguments + " --json").out);
}
double median_of(const Json& json, const char* member) {
  return json[member]["p50"];
}

}  // namespace

TEST_CASE("Scenarios that ask a question say their purpose") {
  for (const char* name :
       {"llama3-8b-spot-64-h100", "llama3-8b-reserved-64-h100", "llama3-8b-mixed-64-h100",
        "llama3-8b-two-zones-64-h100", "gpt3-175b-stopped-for-checkpoints",
        "gpt3-175b-asynchronous-checkpoints", "llama3-405b-whole-run-16384-h100",
        "llama2-13b-32-a100-hdr100", "llama2-13b-32-a100-ndr", "vit-huge-32-a100-8k-images"}) {
    INFO(name);
    CHECK(Scenario::load(name).json()["notes"].get<std::string>().starts_with("Purpose: "));
  }
}

// Model card: 30.84 million GPU-hours. The sketch behind the model gave 70 to 101 days; no number
// of this run but its failures, one of seven fleets, is in the prediction. 14.8T and 0.8T tokens in
// steps of 2,048 x 8,192 = 128 x 131,072 tokens: 882,149 and 47,684.
TEST_CASE("Llama 3.1 405B's published hours lie in the range of the shipped run") {
  const double published = 30.84e6 / 16'384 / 24;  // 78.4 days
  for (const char* name : {"llama3-405b-whole-run-16384-h100", "llama3-405b-16384-h100"}) {
    const Json run = trained(name);
    INFO(name << run["days"].dump());
    CHECK(run["days"]["p10"].get<double>() < published);
    CHECK(run["days"]["p90"].get<double>() > published);
    CHECK(run["days"]["p90"].get<double>() / run["days"]["p10"].get<double>() < 1.6);
    CHECK(run["fit"] == "doubtful");
  }
  const Json run = trained("llama3-405b-whole-run-16384-h100");
  REQUIRE(run["phases"].size() == 2);
  CHECK(run["phases"][0]["steps"] == 882'149);
  CHECK(run["phases"][1]["steps"] == 47'684);
  CHECK(run["phases"][1]["step_time_s"] ==
        trained("llama3-405b-131k-16384-h100")["phases"][0]["step_time_s"]);
  const std::string text = orrery("train llama3-405b-whole-run-16384-h100 --samples 50").out;
  CHECK(text.find("The plan may not fit in memory") != std::string::npos);
  CHECK(text.find("  131072        128") != std::string::npos);
}

/// A fifth of the tokens, so that the many drops of a market take less time to simulate.
const std::string in_short = " --tokens 100B";

// 100B tokens in steps of 512 x 8,192: 23,842 of them on 64 GPUs.
TEST_CASE("Spot is cheaper and later than reserved, and half of each lies between") {
  const Json reserved = trained("llama3-8b-reserved-64-h100" + in_short),
             spot = trained("llama3-8b-spot-64-h100" + in_short),
             mixed = trained("llama3-8b-mixed-64-h100" + in_short);
  const double step = reserved["phases"][0]["step_time_s"];
  CHECK(reserved["steps"] == 23'842);
  CHECK(reserved["alone"]["days"].get<double>() == Approx(23'842 * step / 86'400));
  CHECK(median_of(reserved, "cost_usd") == Approx(median_of(reserved, "days") * 24 * 64 * 3.19));
  CHECK(median_of(spot, "cost_usd") == Approx(median_of(spot, "gpu_hours") * 1.99));
  CHECK(median_of(spot, "days") > median_of(mixed, "days"));
  CHECK(median_of(mixed, "days") > median_of(reserved, "days"));
  CHECK(median_of(spot, "cost_usd") < median_of(mixed, "cost_usd"));
  CHECK(median_of(mixed, "cost_usd") < median_of(reserved, "cost_usd"));
  // 4 nodes of 8 at each price, all there nearly always: about $2.59.
  const Json& pools = mixed["pools"];
  CHECK(pools[0]["mean_share_there"].get<double>() == Approx(1).epsilon(1e-3));
  const double paid = pools[0]["mean_gpu_hours"].get<double>() * 3.19 +
                      pools[1]["mean_gpu_hours"].get<double>() * 1.99;
  CHECK(mixed["cost_usd"]["mean"].get<double>() == Approx(paid).epsilon(1e-9));
  CHECK(mixed["ettr"]["p50"].get<double>() > spot["ettr"]["p50"].get<double>());
}

// 4 bytes x 8.03e9 parameters each way over 12.5 GB/s, and 2 x 1 ms: 2.572 s; at 50 GB/s 0.644 s.
// At $0.01 a GB 2 x 32.1 GB x 23,842 steps: $15,320.
TEST_CASE("Two zones: the network between them lengthens the step by a third and costs most") {
  const Json zones = trained("llama3-8b-two-zones-64-h100" + in_short);
  const Json faster =
      trained("llama3-8b-two-zones-64-h100 --set /run/between/bandwidth='400 Gb/s'" + in_short);
  const double alone = trained("llama3-8b-reserved-64-h100" + in_short)["phases"][0]["step_time_s"];
  const double slow = zones["phases"][0]["step_time_s"], fast = faster["phases"][0]["step_time_s"];
  CHECK(slow - alone == Approx(2.572).epsilon(0.002));
  CHECK(fast - alone == Approx(0.6445).epsilon(0.002));
  CHECK(slow / alone > 4.0 / 3);
  CHECK(median_of(faster, "days") < median_of(zones, "days"));
  double gpus = 0;
  for (const Json& pool : zones["pools"]) {
    gpus += pool["mean_gpu_hours"].get<double>() * pool["usd_per_gpu_hour"].get<double>();
  }
  const double carried = zones["cost_usd"]["mean"].get<double>() - gpus;
  CHECK(carried == Approx(15'320).epsilon(0.002));
  CHECK(carried > gpus);
  // The calm zone is there more than the other one.
  CHECK(zones["pools"][0]["mean_share_there"] > zones["pools"][1]["mean_share_there"]);
}

// 14 bytes x 174.6e9 parameters are 2.44 TB; 16 % of 128 x 625 MB/s are 12.8 GB/s: 191 s. A copy to
// 1,024 hosts at 55 GB/s each and half a second: 0.543 s. Intervals go with the root of the stall.
TEST_CASE(
    "Asynchronous checkpoints: failures cost a tenth of the work that synchronous ones lose") {
  const std::string name = "gpt3-175b-stopped-for-checkpoints";
  const Json stopped = trained(name);
  const Json going = trained("gpt3-175b-asynchronous-checkpoints");
  CHECK(stopped["checkpoint"]["stall_s"].get<double>() == Approx(191).epsilon(0.01));
  CHECK(going["checkpoint"]["stall_s"].get<double>() == Approx(0.543).epsilon(0.01));
  const double between = stopped["checkpoint"]["interval_s"],
               often = going["checkpoint"]["interval_s"];
  CHECK(between / often == Approx(std::sqrt(191 / 0.543)).epsilon(0.05));
  const double stalled = stopped["ledger"]["checkpoints"];
  CHECK(stalled == Approx(191 / (between + 191)).epsilon(0.1));
  CHECK(stopped["ledger"]["lost work"].get<double>() >
        8 * going["ledger"]["lost work"].get<double>());
  CHECK(median_of(going, "days") < 0.97 * median_of(stopped, "days"));
  // Without failures neither loses work, and asynchronous ones all but vanish.
  const Json calm = trained(name + " --set /run/failures/rate=0");
  CHECK(calm["interruptions"]["p90"] == 0);
  CHECK(calm["ledger"]["lost work"] == 0);
}

// A ring of 32 moves 31/32 of 26.0 GB through each node's port for a gather: forward and backward,
// and twice as much in fp32 for gradients: 100.9 GB, 8.07 s over 12.5 GB/s and 2.02 s over 50.
TEST_CASE("HDR100 against NDR: the network is the step on one and hidden on the other") {
  const Json slow = stepped("llama2-13b-32-a100-hdr100"), fast = stepped("llama2-13b-32-a100-ndr");
  const double hdr = slow["step_time_s"], ndr = fast["step_time_s"];
  CHECK(hdr > 100.9 / 12.5);
  CHECK(hdr < 2 * 100.9 / 12.5);
  CHECK(ndr > 100.9 / 50);
  CHECK(hdr / ndr > 2.5);
  CHECK(hdr / ndr < 4);
  CHECK(slow["bottleneck"] == "dp");
  CHECK(slow["breakdown"]["dp"].get<double>() > 0.6 * hdr);
  CHECK(fast["breakdown"]["dp"].get<double>() < 0.05 * ndr);
  // The same cluster, by one number.
  CHECK(
      stepped(
          "llama2-13b-32-a100-hdr100 --set /cluster/fabric/bandwidth='400 Gb/s'")["step_time_s"] ==
      fast["step_time_s"]);
}

// 4,096 pictures over 4 nodes; each of 33.2 megapixels takes 33,177,600 / 187,500 / 857 s to decode
// and as much again to shrink: 1,024 x 0.4130 s on 112 cores are 3.776 s. 15.04 MB each at 10 GB/s:
// 1.54 s. WebP decodes 204 for JPEG's 857.
TEST_CASE("Images of 8K: 32 A100 wait for decoding, and WebP makes it worse") {
  const std::string name = "vit-huge-32-a100-8k-images";
  const Json json = stepped(name);
  const Json& data = json["data"];
  CHECK(data["slowest"] == "decode");
  CHECK(data["time_s"].get<double>() == Approx(3.776).epsilon(1e-3));
  CHECK(json["step_time_s"] == data["time_s"]);
  CHECK(data["stages"][0]["time_s"].get<double>() == Approx(1024 * 15.04e6 / 10e9).epsilon(1e-3));
  CHECK(json["bottleneck"] == "data");
  CHECK(data["wait_s"].get<double>() / json["step_time_s"].get<double>() ==
        Approx(2.0 / 3).margin(0.06));
  CHECK(json["uncertainty"]["p90"].get<double>() > 1.2 * json["step_time_s"].get<double>());
  const Json webp = stepped(name + " --set /data/format=webp-q90");
  CHECK(webp["step_time_s"].get<double>() ==
        Approx(json["step_time_s"].get<double>() * 857 / 204).epsilon(1e-3));
  // Decoded beforehand and kept at 256 patches, nothing waits.
  const Json small = stepped(name +
                             " --set /data/format=raw-rgb --set /data/augment=0 "
                             "--set /data/bytes='196 kB' --set /data/pixels=null");
  CHECK(small["data"]["hidden"] == true);
}

}  // namespace orrery::scenarios
