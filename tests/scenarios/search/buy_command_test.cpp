#include <fmt/format.h>

#include <cmath>
#include <set>

#include "scenarios/scenario/limits.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* small_purchase =
    "buy --model gpt2 --tokens 10B --global-batch 64 --nodes dgx-h100,dgx-a100-80gb ";

}  // namespace

TEST_CASE("orrery buy prints one JSON document with clusters, days and dollars") {
  const Ran ran = orrery(std::string{small_purchase} + "--json");
  CHECK(ran.exit_code == 0);
  CHECK(ran.error.empty());
  const Json json = parsed(ran.out);
  CHECK(json["meets"] == true);
  CHECK(json["reason"].is_null());
  CHECK(json["tokens"] == 1e10);
  CHECK(json["seq_len"] == 1024);  // the longest of GPT-2
  REQUIRE(!json["choices"].empty());
  for (const char* key : {"cluster",
                          "node",
                          "also",
                          "nodes",
                          "gpus",
                          "days",
                          "cost_usd",
                          "meets",
                          "pareto",
                          "price",
                          "gpu_hours",
                          "plan",
                          "flag",
                          "step_time_s",
                          "tokens_per_s",
                          "mfu",
                          "peak_memory_bytes",
                          "fit",
                          "fit_probability",
                          "idle_gpus"}) {
    INFO(key);
    CHECK(json["choices"][0].contains(key));
  }
  for (const Json& each : json["choices"]) {
    for (const char* case_of : {"p10", "p50", "p90"}) {
      CHECK(each["cost_usd"][case_of].get<double>() ==
            Approx(each["days"][case_of].get<double>() * 24 * each["gpus"].get<double>() *
                   each["price"]["usd_per_gpu_hour"].get<double>()));
    }
    CHECK(each["days"]["p10"] < each["days"]["p90"]);
  }
  // 128 nodes and more: 64 sequences are too few for as many GPUs of 12 layers.
  CHECK(!json["impossible"].empty());
  CHECK(json["impossible"][0].contains("reason"));
}

TEST_CASE("orrery buy says no with exit code 1 and names the closest offers") {
  const Ran ran = orrery(std::string{small_purchase} + "--deadline 1min --budget '$1' --json");
  CHECK(ran.exit_code == 1);
  const Json json = parsed(ran.out);
  CHECK(json["meets"] == false);
  CHECK(json["deadline_s"] == 60);
  CHECK(json["budget_usd"] == 1);
  const std::string reason = json["reason"];
  for (const char* part : {"no cluster meets deadline and budget; closest: dgx-", "; fastest: dgx-",
                           "; cheapest: dgx-"}) {
    INFO(part);
    CHECK(reason.find(part) != std::string::npos);
  }
  const Ran text = orrery(std::string{small_purchase} + "--deadline 1min --budget '$1'");
  CHECK(text.exit_code == 1);
  CHECK(text.out.find("No cluster meets the limits; these come closest") != std::string::npos);
}

TEST_CASE("The text of orrery buy shows ranking, front, prices and what is left out") {
  const Ran ran = orrery(std::string{small_purchase} + "--budget '$1000'");
  CHECK(ran.exit_code == 0);
  for (const char* part :
       {"Clusters to train gpt2 on 10 B tokens", "meet the limits, fastest first",
        "◆ No cluster is both faster and cheaper than these", "Plans and prices",
        "/h: ", "orrery plan --model gpt2 --cluster", "Not possible",
        "storage, egress and negotiation", "with failures and restarts"}) {
    INFO(part);
    CHECK(ran.out.find(part) != std::string::npos);
  }
}

TEST_CASE("What orrery buy cannot use is reported in one line") {
  CHECK(refused_line("buy --model gpt2 --tokens many") ==
        "--tokens: expected a number of tokens above 0, at most 1e18, such as \"300B\", found "
        "'many'");
  CHECK(refused_line("buy --model gpt2 --tokens 1B --deadline soon") ==
        "--deadline: expected days or a time such as \"60\", \"60d\" or \"8w\", found 'soon'");
  CHECK(refused_line("buy --model gpt2 --tokens 1B --budget much") ==
        "--budget: expected an amount such as \"5M\", \"$5M\" or \"$5,000,000\", found 'much'");
  const std::string nodes = refused_line("buy --model gpt2 --tokens 1B --nodes abacus");
  const std::string start = "--nodes: unknown node 'abacus'; known: ";
  CHECK(nodes.substr(0, start.size()) == start);
}

TEST_CASE("What orrery buy is not given are sizes that people train with, and it shows them") {
  // Qwen3 8B takes 40,960 tokens: 102 of those would be 4M, and no number of GPUs divides 102.
  const Ran ran = orrery("buy --model qwen3-8b --tokens 1T --nodes dgx-h200 --json");
  const Json json = parsed(ran.out);
  CHECK(json["seq_len"] == 8192);
  CHECK(json["global_batch"] == 512);
  const Ran text = orrery("buy --model qwen3-8b --tokens 1T --nodes dgx-h200");
  CHECK(text.out.find("Not stated, assumed: --seq-len 8192 (the model supports up to 40960), "
                      "--global-batch 512 "
                      "(a power of two, 4M tokens a step), --software generic") !=
        std::string::npos);
  const Ran given = orrery(
      "buy --model gpt2 --tokens 10B --nodes dgx-h100 --seq-len 1024 --global-batch 96 "
      "--software megatron-lm");
  CHECK(given.out.find("Not stated, assumed") == std::string::npos);
  CHECK(given.out.find("96 sequences of 1024 tokens a step") != std::string::npos);
}

TEST_CASE("orrery buy says what its plans took from recipes, and on which nodes") {
  const Json found = parsed(orrery("buy --model qwen3-30b-a3b --tokens 10B --global-batch 64 "
                                   "--nodes dgx-b200 --software megatron-bridge "
                                   "--precision mxfp8 --json")
                                .out);
  const Json& said = found.at("assumptions");
  CHECK(std::count_if(said.begin(), said.end(), [](const Json& each) {
          return each.get<std::string>().starts_with(
              "plans on dgx-b200: /plan/permute_fusion: not stated; true assumed, from the recipes "
              "of megatron-bridge");
        }) >= 1);  // one for each recipe that a plan took it from
}

TEST_CASE("orrery simulate and orrery buy price the same cluster alike") {
  for (const char* cluster :
       {"hgx-h100 x 1", "hgx-h100 x 2", "dgx-h200 x 4", "dgx-a100-80gb x 2", "mi300x-8x x 2"}) {
    INFO(cluster);
    const std::string node{cluster, std::string{cluster}.find(' ')};
    const Json bought = parsed(
        orrery("buy --model gpt2 --tokens 10B --global-batch 64 --json --nodes " + node).out);
    bool found = false;
    for (const Json& each : bought["choices"]) {
      if (each["cluster"] != cluster) continue;
      found = true;
      const Json simulated =
          parsed(orrery(std::string{"simulate --model gpt2 --cluster '"} + cluster + "' --plan " +
                        each["flag"].get<std::string>() + " --json")
                     .out);
      CHECK(simulated["price"] == each["price"]);
      CHECK(simulated["cost_usd_per_step"].is_null() == each["cost_usd"].is_null());
      CHECK(simulated["step_time_s"] == each["step_time_s"]);
    }
    CHECK(found);
  }
  // One node of two is priced as one node, however it was asked for.
  const Json one = parsed(
      orrery("simulate --model gpt2 --cluster 'hgx-h100 x 2' --set /cluster/nodes=1 --json").out);
  CHECK(one["price_usd_per_gpu_hour"] == 3.2);
}

TEST_CASE("orrery buy takes files of nodes and clusters at their own price") {
  const Scratch scratch;
  const std::string node = scratch.write(
      "own.json", R"({"like": "dgx-h100", "name": "own", "price_per_gpu_hour": "$2/h"})");
  const std::string cluster =
      scratch.write("ours.json", R"({"node": "mi300x-8x", "nodes": 4, "price_per_gpu_hour": "$3/h",
                       "sources": {"/price_per_gpu_hour": "our contract"}})");
  const Json json =
      parsed(orrery("buy --model gpt2 --tokens 10B --global-batch 64 --json --nodes " + node + "," +
                    cluster)
                 .out);
  std::set<int> sizes;
  for (const Json& each : json["choices"]) {
    const bool own = each["node"] == node;
    CHECK(each["price"]["usd_per_gpu_hour"] == (own ? 2 : 3));
    CHECK(each["price"]["source"] == (own ? "given" : "our contract"));
    CHECK(each["price"]["provider"].is_null());
    CHECK(each["price"]["indicative"].is_null());
    if (!own) sizes.insert(each["nodes"].get<int>());
  }
  CHECK(sizes.size() > 2);  // its number of nodes is varied
  // The line for the best choice is one that works.
  const Ran text = orrery("buy --model gpt2 --tokens 10B --global-batch 64 --nodes " + node);
  const std::size_t line = text.out.find("orrery plan ");
  REQUIRE(line != std::string::npos);
  const std::string next = text.out.substr(line + 7, text.out.find('\n', line) - line - 7);
  CHECK(orrery(next + " --network static").exit_code == 0);
}

TEST_CASE("orrery buy says where the GPUs asked for are no whole number of nodes") {
  const std::string call =
      "buy --model gpt2 --tokens 10B --global-batch 64 --nodes dgx-h100,a100-4x-omni-path ";
  const auto said = [](const Json& json) {
    std::vector<std::string> lines;
    for (const Json& each : json["assumptions"]) {
      if (each.get<std::string>().starts_with("--gpus ")) lines.push_back(each);
    }
    return lines;
  };
  const Json rounded = parsed(orrery(call + "--gpus 64,67 --json").out);
  CHECK(rounded["gpus_asked"] == Json{64, 67});
  CHECK(said(rounded) ==
        std::vector<std::string>{
            "--gpus 67: 68 GPUs of a100-4x-omni-path, the next whole number of nodes",
            "--gpus 67: 72 GPUs of dgx-h100, the next whole number of nodes"});
  const Json whole = parsed(orrery(call + "--gpus 64 --json").out);
  CHECK(whole["gpus_asked"] == Json{64});
  CHECK(said(whole).empty());
  CHECK(parsed(orrery(std::string{small_purchase} + "--json").out)["gpus_asked"] == Json::array());
}

TEST_CASE("orrery buy at a price that was quoted, on sizes that are asked for") {
  const Json json =
      parsed(orrery("buy --model gpt2 --tokens 10B --global-batch 48 --nodes dgx-h100 "
                    "--gpus 24,48 --quote dgx-h100=2.10/h --json")
                 .out);
  std::set<int> sizes;
  for (const Json& each : json["choices"]) {
    sizes.insert(each["gpus"].get<int>());
    // Days x 24 h x GPUs x $2.10.
    CHECK(each["cost_usd"]["p50"].get<double>() ==
          Approx(each["days"]["p50"].get<double>() * 24 * each["gpus"].get<double>() * 2.10));
    CHECK(each["price"]["source"] == "quoted (--quote)");
  }
  CHECK(sizes == std::set<int>{24, 48});
  const Json doubted = parsed(orrery("buy --model gpt2 --tokens 10B --global-batch 64 --nodes "
                                     "dgx-h100 --gpus 8 --quote 0.05/h --json")
                                  .out);
  const Json& said = doubted["assumptions"];
  CHECK(std::count_if(said.begin(), said.end(), [](const Json& each) {
          return each.get<std::string>().starts_with(
              "--quote: is $0.05/h the price of a GPU-hour? Every dated offer is above $");
        }) == 1);
  CHECK(refused_line("buy --model gpt2 --tokens 1B --quote cheap") ==
        "--quote: expected a price of a GPU-hour such as 2.10/h or p5=2.10/h, found 'cheap'");
  CHECK(refused_line("buy --model gpt2 --tokens 1B --nodes p5 --quote p4d=2/h") ==
        "--quote: 'p4d' is none of the node types considered: p5");
}

TEST_CASE("A node of one's own is quoted by its file's name, and a confidence is a percentage") {
  const Scratch scratch;
  const std::string own = scratch.write("own.json", R"({"like": "dgx-h100"})");
  const std::string call =
      "buy --model gpt2 --tokens 10B --global-batch 64 --gpus 8 --nodes " + own;
  const Json json = parsed(orrery(call + " --quote own=2.10/h --json").out);
  CHECK(json["choices"].at(0)["price"]["usd_per_gpu_hour"] == 2.1);
  const std::string by_path = orrery(call + " --quote " + own + "=2.10/h --json").out;
  CHECK(parsed(by_path)["choices"].at(0)["price"]["usd_per_gpu_hour"] == 2.1);
  const std::string limited =
      "buy --model gpt2 --tokens 10B --global-batch 64 --gpus 8 --nodes "
      "dgx-h100 --deadline '2 months' ";
  Json percent = parsed(orrery(limited + "--json --confidence 90%").out),
       share = parsed(orrery(limited + "--json --confidence 0.9").out);
  for (Json* each : {&percent, &share}) each->erase("inputs");
  CHECK(percent == share);
  CHECK(refused_line(limited + "--confidence sure").find("a probability between 0 and 1") !=
        std::string::npos);
  CHECK(orrery("train llama3-8b-8-h100 --tokens 1B --samples 20 --deadline '1 week' "
               "--confidence 95%")
            .out.find("95 wanted") != std::string::npos);
  CHECK(orrery(call).out.find("1 cluster, cheapest first") != std::string::npos);
}

TEST_CASE("orrery buy by term: reserved, spot and owned") {
  const std::string call = "buy --model gpt2 --tokens 10B --global-batch 64 --gpus 16 --json ";
  const auto first = [&](const std::string& flags) {
    return parsed(orrery(call + flags).out)["choices"].at(0);
  };
  // AWS P6-B200 for three years, 2026-09: $8.545 against $14.24.
  const Json reserved = first("--nodes p6-b200 --term 3y");
  CHECK(reserved["price"]["usd_per_gpu_hour"] == 8.545);
  CHECK(reserved["price"]["source"].get<std::string>().find("reserved for 3 years, 2026-09") !=
        std::string::npos);
  CHECK(first("--nodes p6-b200")["price"]["usd_per_gpu_hour"] == 14.24);
  const Json unknown = first("--nodes p6-b200 --term 1y");  // days alone
  CHECK(unknown["cost_usd"].is_null());
  CHECK(unknown["days"]["p50"].get<double>() > 0);
  CHECK(unknown["why_no_price"] ==
        "no offer of the catalogue has a price of p6-b200 on this term (1y); state --quote");
  // Owned: no one offers it, and it is cheaper than on demand.
  const Json owned = first("--nodes dgx-h100 --term own");
  const double price = owned["price"]["usd_per_gpu_hour"].get<double>();
  CHECK(price > 1.5);
  CHECK(price < 3);
  CHECK(owned["price"]["source"].get<std::string>().starts_with("owned: $"));
  CHECK(refused_line("buy --model gpt2 --tokens 1B --term forever") ==
        "--term: expected one of on-demand 1y 3y spot mix own, or shares that add up to 1 such as "
        "3y=0.6,spot=0.4, found 'forever'");
}

// AWS P6-B200: 0.6 x $8.545 + 0.4 x $14.24 = $10.823. H100 nodes of Verda, October 2026: 0.7 x
// $3.81
// + 0.3 x $1.91 = $3.24; those of Nebius, 0.7 x $4.50 + 0.3 x $0.79 = $3.387, are dearer.
TEST_CASE("orrery buy: part of the nodes on one term and part on another") {
  const std::string call = "buy --model gpt2 --tokens 10B --global-batch 64 --gpus 16 --json ";
  const auto first = [&](const std::string& flags) {
    return parsed(orrery(call + flags).out)["choices"].at(0);
  };
  const Json mixed = first("--nodes p6-b200 --term 3y=0.6,on-demand=0.4");
  CHECK(mixed["price"]["usd_per_gpu_hour"].get<double>() == Approx(10.823));
  CHECK(mixed["price"]["source"].get<std::string>().find(
            "60 % reserved for 3 years, 40 % on demand, 2026-09") != std::string::npos);
  // Dollars are days x 24 x 16 GPUs x the price.
  CHECK(mixed["cost_usd"]["p50"].get<double>() ==
        Approx(mixed["days"]["p50"].get<double>() * 24 * 16 * 10.823));
  CHECK(mixed["days"]["p50"] == first("--nodes p6-b200")["days"]["p50"]);
  CHECK(first("--nodes p6-b200 --term 3y=60%,on-demand=40%")["cost_usd"] == mixed["cost_usd"]);
  const Json usual = first("--nodes hgx-h100 --term mix");
  CHECK(usual["price"]["usd_per_gpu_hour"].get<double>() == Approx(3.24));
  // A part that is taken: later than on demand, sooner than all of it on the market.
  const double part = usual["days"]["p50"], none = first("--nodes hgx-h100")["days"]["p50"],
               all = first("--nodes hgx-h100 --term spot")["days"]["p50"];
  CHECK(part > none);
  CHECK(part < all);
  const Json unknown = first("--nodes p6-b200 --term 3y=0.5,spot=0.5");
  CHECK(unknown["cost_usd"].is_null());
  CHECK(unknown["days"]["p50"].get<double>() > 0);
  CHECK(unknown["why_no_price"] ==
        "no one offer of the catalogue has p6-b200 50 % reserved for 3 years, 50 % on the spot "
        "market; state --quote");
  CHECK(refused_line("buy --model gpt2 --tokens 1B --term 3y=0.6,spot=0.6")
            .ends_with("found '3y=0.6,spot=0.6', which adds up to 1.2"));
  CHECK(refused_line("buy --model gpt2 --tokens 1B --term 3y=0.6,mix=0.4")
            .find("found '3y=0.6,mix=0.4'") != std::string::npos);
}

TEST_CASE("orrery buy draws days against dollars") {
  const Scratch scratch;
  const std::string file = scratch.path("days.svg");
  const Ran ran = orrery(
      "buy --model gpt2 --tokens 10B --global-batch 64 --nodes hgx-h100,hgx-h200 --gpus 8:64:x2 "
      "--deadline 2d --budget '$2,000' --picture " +
      file);
  CHECK((ran.exit_code == 0 || ran.exit_code == 1));
  const std::string picture = scratch.read("days.svg");
  CHECK(picture.starts_with("<svg"));
  CHECK(picture.find("none is both faster and cheaper than these") != std::string::npos);
  CHECK(picture.find("2 days") != std::string::npos);
  CHECK(picture.find("$2k") != std::string::npos);
  CHECK(picture.find("nan") == std::string::npos);
}

TEST_CASE("orrery buy: a deadline is kept with a confidence, failures and restarts included") {
  const std::string call =
      "buy --model gpt2 --tokens 10B --global-batch 64 --nodes dgx-h100 --gpus 16 --json ";
  const Json free = parsed(orrery(call).out)["choices"].at(0);
  const double p50 = free["days"]["p50"].get<double>(), p90 = free["days"]["p90"].get<double>();
  const auto exit_code = [&](double days, const char* confidence) {
    return orrery(call + fmt::format("--deadline {}d --confidence {}", days, confidence)).exit_code;
  };
  CHECK(exit_code(1.01 * p50, "0.5") == 0);
  CHECK(exit_code(1.01 * p50, "0.9") == 1);
  CHECK(exit_code(1.01 * p90, "0.9") == 0);
}

TEST_CASE("Deadlines are days, and budgets dollars, as people write them") {
  for (const auto& [text, days] :
       std::initializer_list<std::pair<const char*, double>>{{"60", 60},
                                                             {"60d", 60},
                                                             {"8w", 56},
                                                             {"1.5 weeks", 10.5},
                                                             {"400 d", 400},
                                                             {"36h", 1.5}}) {
    INFO(text);
    CHECK(parse_days(text).value() == Approx(days));
  }
  for (const char* text : {"", "d", "-3", "0", "3 x", "inf", "nan", "1e999"})
    CHECK(!parse_days(text));
  for (const char* text : {"5M", "$5M", "5000000", "$5,000,000", "5,000k", " $ 0.005B"}) {
    INFO(text);
    CHECK(parse_dollars(text).value().count() == Approx(5e6));
  }
  for (const char* text :
       {"", "$", "5,00", ",500", "5000,000", "5,0000", "0", "-5M", "5X", "$$5"}) {
    INFO(text);
    CHECK(!parse_dollars(text));
  }
}

TEST_CASE("An old price is marked, in text and in JSON") {
  const std::string asked =
      "simulate --model gpt2 --cluster dgx-a100-80gb --plan zero=1,global_batch=64 ";
  const Json price = parsed(orrery(asked + "--json").out)["price"];
  CHECK(price["outdated"] == true);
  CHECK(price["date"] == "2025-03-03");
  CHECK(orrery(asked).out.find("OLD: listed 2025-03-03") != std::string::npos);
  const Json newer = parsed(
      orrery("simulate --model gpt2 --cluster dgx-h100 --plan zero=1,global_batch=64 --json").out);
  CHECK(newer["price"]["outdated"] == false);
}

// 64 sequences a step, a picture each: 857 / 2 a core and second (decoding, augmenting), on one
// core of a node: 64 x 2 / 857 / nodes seconds, longer than any step of GPT-2 here.
TEST_CASE("orrery buy: clusters whose steps wait for data are priced by that wait") {
  const std::string asked = std::string{small_purchase} + "--gpus 8,16 ";
  const Json free = parsed(orrery(asked + "--json").out);
  const std::string data = "--data '{\"format\": \"jpeg-q90\", \"decode\": {\"cores\": 1}}' ";
  const Json waits = parsed(orrery(asked + data + "--json").out);
  REQUIRE(waits["choices"].size() == free["choices"].size());
  for (const Json& each : waits["choices"]) {
    const double decoding = 64 * 2 / 857.0 / each["nodes"].get<double>();
    CHECK(each["step_time_s"].get<double>() == Approx(decoding).epsilon(1e-6));
    CHECK(each["data"]["slowest"] == "decode");
    CHECK(each["data"]["wait_s"].get<double>() > 0);
  }
  CHECK(!free["choices"][0].contains("data"));
  // The same lane on every cluster: the cheapest node wins, not the fastest GPU.
  CHECK(waits["choices"][0]["node"] == "dgx-a100-80gb");
  const std::string text = unwrapped(orrery(asked + data).out);
  CHECK(text.find("for its input: decode takes longest") != std::string::npos);
  CHECK(text.find("/data/augment: 1 assumed") != std::string::npos);
  CHECK(refused_line(asked + "--data '{\"format\": \"jpeg-q90\"}'")
            .starts_with("--data/decode/cores: missing"));
  CHECK(refused_line(asked + "--data nowhere.json").starts_with("nowhere.json: cannot be read"));
}

// GPT-2's 124M parameters of 4 bytes cross once a step from each of two zones.
TEST_CASE("orrery buy: nodes in two zones, and dollars of what crosses between them") {
  const Json here = parsed(orrery("buy --model gpt2 --tokens 10B --global-batch 64 --gpus 16 "
                                  "--nodes dgx-h100 --json")
                               .out);
  const std::string zones =
      "buy --model gpt2 --tokens 10B --global-batch 64 --gpus 16 --nodes "
      "dgx-h100 --between '{\"zones\": 2, \"bandwidth\": \"100 Gb/s\", "
      "\"dollars_per_gb\": 0.02}' ";
  const Json apart = parsed(orrery(zones + "--json").out);
  const Json& choice = apart["choices"][0];
  const double steps = 10e9 / (64 * 1024);
  const double sent = choice["between_zones"]["gb"].get<double>();
  CHECK(sent == Approx(2 * 4 * 0.124 * std::ceil(steps)).epsilon(0.01));
  CHECK(choice["between_zones"]["cost_usd"].get<double>() == Approx(0.02 * sent));
  CHECK(choice["cost_usd"]["p50"].get<double>() ==
        Approx(choice["days"]["p50"].get<double>() * 24 * 16 *
                   choice["price"]["usd_per_gpu_hour"].get<double>() +
               0.02 * sent));
  CHECK(choice["days"]["p50"] > here["choices"][0]["days"]["p50"]);
  CHECK(!here["choices"][0].contains("between_zones"));
  CHECK(unwrapped(orrery(zones).out).find("TB cross from zone to zone: $") != std::string::npos);
  CHECK(refused_line(std::string{small_purchase} + "--between '{\"zones\": 1}'") ==
        "--between:/zones: expected an integer from 2 to 64, found 1");
}

}  // namespace orrery::scenarios
