#include "scenarios/claims/claims.hpp"

#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

JudgedClaim judged(const std::string& claim) {
  return judge_claims(Document::parse("[" + claim + "]", "claims.json")).front();
}

std::string file(const std::string& path) {
  return std::string{ORRERY_SOURCE} + "/" + path;
}

}  // namespace

TEST_CASE("Known claims get the verdicts that were worked out for them") {
  std::size_t claims = 0, agreeing = 0;
  for (const char* path : {"scenarios/claims/articles.json", "tests/scenarios/claims/known.json"}) {
    for (const JudgedClaim& each : judge_claims(Document::load(file(path)))) {
      REQUIRE(each.expected);
      const std::string_view verdict = word_of(verdict_words, each.judgement.verdict);
      INFO(each.id << ": " << verdict << ", bound " << each.judgement.bound);
      CHECK(verdict == *each.expected);
      CHECK(!each.judgement.bound.empty());
      CHECK(!each.judgement.formula.empty());
      CHECK(!each.judgement.source.empty());
      ++claims;
      agreeing += verdict == *each.expected ? 1 : 0;
    }
  }
  CHECK(claims == 37);
  CHECK(agreeing >= 34);
}

// The same rules must let true claims pass: each of these is just inside its bound.
TEST_CASE("A rule that refuses a false number accepts the true one") {
  const std::pair<const char*, Verdict> cases[] = {
      {R"({"quantity":"link bandwidth","value":"12.4 GB/s","subject":{"link":"100 Gb/s"}})",
       Verdict::possible},
      {R"({"quantity":"bus bandwidth","value":"235 GB/s","subject":{"node":"dgx-a100-80gb"}})",
       Verdict::possible},
      {R"({"quantity":"bus bandwidth","value":"480 GB/s","subject":{"node":"dgx-h100"}})",
       Verdict::possible},
      {R"({"quantity":"gpus","value":8192,"subject":{"data":128,"tensor":8,"pipeline":8}})",
       Verdict::possible},
      {R"({"quantity":"peak","value":"989 TFLOP/s","subject":{"gpu":"h100"},
           "conditions":{"dtype":"bf16"}})",
       Verdict::possible},
      {R"({"quantity":"peak ratio","value":2.5,"subject":{"gpu":"a100-sxm-80gb","of":"v100-sxm-32gb"},
           "conditions":{"dtype":"fp16"}})",
       Verdict::possible},
      {R"({"quantity":"parameters","value":"405B","subject":{"gpu":"h100","gpus":8},
           "conditions":{"bytes_per_parameter":1}})",
       Verdict::possible},
      // 3.15e23 FLOP on 1,024 A100 at 45 % take 25.4 days, at 70 % 16.3.
      {R"({"quantity":"training time","value":"34 d","subject":{"gpu":"a100","gpus":1024,
           "parameters":"175B","tokens":"300B"}})",
       Verdict::possible},
      {R"({"quantity":"training time","value":"16 d","subject":{"gpu":"a100","gpus":1024,
           "parameters":"175B","tokens":"300B"}})",
       Verdict::implausible},
      {R"({"quantity":"speedup","value":1.5,"conditions":{"technique":"fp8"}})", Verdict::possible},
      {R"({"quantity":"speedup","value":1.9,"conditions":{"share":0.8,"factor":2}})",
       Verdict::impossible},
      {R"({"quantity":"pipeline bubble","value":"7.9%","conditions":{"stages":12,"micro_batches":128}})",
       Verdict::possible},
      {R"({"quantity":"training cost","value":"$200k","subject":{"parameters":"7B","tokens":"1T"}})",
       Verdict::possible},
      {R"({"quantity":"cost saving","value":"65%","conditions":{"mfu":"45%"}})",
       Verdict::impossible},
      {R"({"quantity":"cost saving","value":"30%","conditions":{"mfu":"30%"}})", Verdict::possible},
      {R"({"quantity":"time between failures","value":"26 min","subject":{"devices":100000},
           "conditions":{"device_mtbf":"1826.25 d"}})",
       Verdict::possible},
      {R"({"quantity":"mfu","value":"35.8%","subject":{"gpu":"a100","rate":"149 TFLOP/s"},
           "conditions":{"recomputation":"full"}})",
       Verdict::possible},
      {R"({"quantity":"mfu","value":"120%","subject":{"gpu":"h100","rate":"1200 TFLOP/s"}})",
       Verdict::impossible},
      {R"({"quantity":"mfu","value":"95%","subject":{"gpu":"h100","rate":"940 TFLOP/s"}})",
       Verdict::implausible},
      {R"({"quantity":"switches","value":48,"subject":{"endpoints":1024,"ports":64}})",
       Verdict::possible},
      {R"({"quantity":"pue","value":0.95})", Verdict::impossible},
      {R"({"quantity":"energy share of cost","value":"5%"})", Verdict::possible},
      {R"({"quantity":"decode rate","value":20,"subject":{"gpu":"h100","parameters":"70B"},
           "conditions":{"bytes_per_parameter":2}})",
       Verdict::possible},
      {R"({"quantity":"spot saving","value":["0%","95%"]})", Verdict::possible},
      {R"({"quantity":"spot saving","value":["95%","99%"]})", Verdict::implausible},
      {R"({"quantity":"co2","value":1,"subject":{"gpu":"h100","gpu_hours":"30.84M"}})",
       Verdict::impossible},
      {R"({"quantity":"checkpoint overhead","value":"0.001%","subject":{"parameters":"405B",
           "gpus":16384},"conditions":{"every":"6.3 s"}})",
       Verdict::impossible}};
  for (const auto& [claim, verdict] : cases) {
    const JudgedClaim found = judged(claim);
    INFO(claim << "\n" << found.judgement.bound);
    CHECK(found.judgement.verdict == verdict);
    if (verdict == Verdict::possible) CHECK(found.judgement.otherwise.empty());
  }
}

TEST_CASE("What would make a claim true is the smallest change") {
  CHECK(judged(R"({"quantity":"gpus","value":1536,"subject":{"data":128,"tensor":8,"pipeline":8}})")
            .judgement.otherwise == "data = 24");
  CHECK(judged(R"({"quantity":"parameters","value":"70B","subject":{"gpu":"h100","gpus":1},
                  "conditions":{"bytes_per_parameter":16}})")
            .judgement.otherwise.find("14 such GPUs") == 0);
}

TEST_CASE("A claim that the vocabulary does not have is refused where it is written") {
  CHECK_THROWS_WITH(
      judged(R"({"quantity":"colour","value":1})"),
      Catch::Matchers::StartsWith("claims.json:/0/quantity: unknown quantity 'colour'; "
                                  "known: link bandwidth"));
  CHECK_THROWS_WITH(
      judged(R"({"quantity":"link bandwidth","value":"1 GB/s"})"),
      "claims.json:/0/value: a claim of 'link bandwidth' needs 'link' in its subject or "
      "conditions");
  CHECK_THROWS(judged(R"({"quantity":"pue","value":1.2,"conditions":{"colour":1}})"));
  CHECK_THROWS(judged(R"({"quantity":"pue","value":"much"})"));
  CHECK_THROWS_WITH(judge_claims(Document::parse("[]", "none.json")),
                    Catch::Contains("expected at least one claim"));
}

TEST_CASE("orrery check: a list, JSON, and exit code 1 if something is impossible") {
  const Ran ran = orrery("check " + file("scenarios/claims/articles.json") + " --json");
  CHECK(ran.exit_code == 1);
  const Json json = parsed(ran.out);
  REQUIRE(json["claims"].size() == 11);
  CHECK(json["claims"][0]["verdict"] == "impossible");
  CHECK(json["claims"][0]["bound"] == "12.5 GB/s in one direction");
  const Scratch scratch;
  const std::string path =
      scratch.write("one.json", R"([{"id":"a","quantity":"pue","value":1.1}])");
  const Ran one = orrery("check " + path);
  CHECK(one.exit_code == 0);
  CHECK(one.out.find("possible") == 0);
}

}  // namespace orrery::scenarios
