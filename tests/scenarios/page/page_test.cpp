// One page of answers: what it shows of each, and that labels of pictures stay inside.

#include "scenarios/page/page.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <regex>

#include "scenarios/page/charts.hpp"
#include "scenarios/page/html.hpp"
#include "sim/errors.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {

namespace {

bool shows(const std::string& page, const std::string& text) {
  return page.find(text) != std::string::npos;
}

Json measured_run() {
  return Json::parse(R"({"command": "compare", "scenario": "llama", "source": "profiler",
    "predicted_s": 10.0, "measured_s": 12.0, "difference_s": 2.0, "ratio": 0.83, "error_pct": -16.7,
    "tokens_per_s": 1000,
    "steps": {"count": 1, "left_out": 0, "median_s": 12, "p10_s": 12, "p90_s": 12, "slow_steps": 0},
    "classes": [
      {"class": "gemm", "predicted_s": 8.0, "measured_s": 10.5},
      {"class": "communication", "predicted_s": 2.0, "measured_s": 1.5},
      {"class": "data_loading", "predicted_s": 0, "measured_s": 0}],
    "causes": [{"cause": "GEMMs 1.3 times as long", "flags": "--set /software/gemm=1", "effect_s": 2.5,
                "share": 1.25, "prior": 0.2, "basis": "a number of the profile"}],
    "unexplained_s": -0.5, "alternatives": null,
    "collectives": [{"collective": "all_gather", "group": "dp", "communicator": null, "ranks": 8,
                     "bytes": 1048576, "predicted": null,
                     "measured": {"count": 4, "time_s": 0.5}, "transfer_s": 0.25}],
    "shapes": [{"sizes": [64, 128, 256], "batch": 1, "predicted": {"count": 2, "time_s": 1e-3},
                "measured": null}],
    "kernels": [{"name": "void gemm<float>", "class": "gemm", "count": 3, "time_s": 0.1}],
    "ranks": [{"rank": 0}], "fit": null, "notes": ["a note"]})");
}

std::string page_of_json(const Json& json) {
  std::vector<Document> documents;
  documents.push_back(Document::from(json, "result.json"));
  return page_of(documents);
}

std::string row_line(int index, int tensor, double step, double bytes, const std::string& fit) {
  return Json{{"index", index},
              {"values", {{"/plan/tensor", tensor}}},
              {"error", nullptr},
              {"gpus", 8},
              {"step_time_s", step},
              {"tokens_per_s", 1e6 / step},
              {"mfu", 0.4},
              {"peak_memory_bytes", bytes},
              {"fits", fit != "no"},
              {"fit", fit},
              {"uncertainty", {{"p10", 0.9 * step}, {"p50", step}, {"p90", 1.2 * step}}}}
             .dump() +
         "\n";
}

std::string store_of(const std::string& rows, const Json& vary = Json::array(), int variants = 4,
                     const Json& shard = nullptr) {
  return Json{{"orrery_sweep", 1},
              {"scenario", "llama"},
              {"vary", vary},
              {"variants", variants},
              {"shard", shard}}
             .dump() +
         "\n" + rows;
}

std::string page_of_store(const std::string& store) {
  std::vector<Document> documents;
  documents.push_back(result_of(store, "f.jsonl"));
  return page_of(documents);
}

Json varied(const char* pointer, const Json& values) {
  return {{"pointer", pointer}, {"values", values}};
}

/// Position, anchor and text of every label of a picture.
struct Label {
  double x = 0, y = 0;
  std::string anchor, text;
};
std::vector<Label> labels_of(const std::string& chart) {
  const std::regex label{
      R"(<text x='([-\d.]+)' y='([-\d.]+)' class='ink halo' text-anchor='(\w+)'>([^<]*)<)"};
  std::vector<Label> found;
  for (std::sregex_iterator it{chart.begin(), chart.end(), label}, end; it != end; ++it) {
    found.push_back({std::stod((*it)[1]), std::stod((*it)[2]), (*it)[3], (*it)[4]});
  }
  return found;
}

}  // namespace

TEST_CASE("The page of a search counts the plans within its error as the text does") {
  const std::string call =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 64 --seq-len 1024 --top 4";
  Json json = parsed(orrery(call + " --json").out);
  std::int64_t plans = 0;
  for (const Json& each : json["as_good"]["classes"]) plans += each["plans"].get<std::int64_t>();
  const std::int64_t more = json["as_good"]["at_most_more"];
  REQUIRE(plans > 1);
  REQUIRE(more > 0);
  CHECK_THAT(orrery(call).out,
             Catch::Contains(fmt::format("distinguish {} plans, and up to {} more", plans, more)));
  CHECK(
      shows(page_of_json(json),
            fmt::format("fit, {} within the error of the best, and up to {} more<", plans, more)));
  json["as_good"]["at_most_more"] = 0;
  CHECK(shows(page_of_json(json), fmt::format("fit, {} within the error of the best<", plans)));
}

TEST_CASE("The page of a search that names no stack has each stack's best and what others lose") {
  const std::string call =
      "plan --model gpt2 --cluster dgx-a100-80gb --global-batch 64 --seq-len 1024 --top 4 --json";
  Json json = parsed(orrery(call).out);
  const std::string page = page_of_json(json);
  REQUIRE(json["over_stacks"]["stacks"].size() > 1);
  for (const Json& stack : json["over_stacks"]["stacks"]) {
    const std::string row = "<td>" + stack["software"].get<std::string>() + "</td>";
    const std::size_t begin = page.find(row);
    REQUIRE(begin != std::string::npos);
    const std::string cells = page.substr(begin, page.find("</tr>", begin) - begin);
    const int best = stack["best_plan"];
    double least = 0;
    for (const Json& each : stack["plans"]) {
      if (each["plan"] == best) least = each["static_step_time_s"];
    }
    REQUIRE(least > 0);
    for (const Json& each : stack["plans"]) {
      if (each["plan"] == best) continue;
      const double more = each["static_step_time_s"].get<double>() / least - 1;
      CHECK_THAT(cells, Catch::Contains(fmt::format("{:+.1f} %", 100 * more)));
    }
  }
  constexpr const char* title = "The same plans on each fitted stack";
  CHECK(shows(page, title));
  CHECK(!shows(page_of_json(parsed(orrery(call + " --software nemo").out)), title));
  CHECK(!shows(page_of_json(parsed(orrery(call + " --objective cost").out)), title));
  for (const int wrong : {0, 99, -1}) {
    json["over_stacks"]["stacks"][0]["best_plan"] = wrong;
    CHECK_THROWS_WITH(page_of_json(json), Catch::Contains("/over_stacks/stacks/0/best_plan"));
  }
}

TEST_CASE("The page of a measured run shows both steps by class, and what would explain them") {
  const std::string page = page_of_json(measured_run());
  CHECK(shows(page, "<h1>A run of llama</h1>"));
  CHECK(shows(page, "20.0 % more"));
  CHECK(shows(page, "predicted, GEMMs: 8.000 s"));
  CHECK(shows(page, "measured, GEMMs: 10.50 s"));
  CHECK(shows(page, "GEMMs: +2.500 s"));
  CHECK(shows(page, "exposed communication: \u2212500 ms"));
  CHECK_FALSE(shows(page, "idle: data loading"));  // it takes no time in either
  CHECK(shows(page, "GEMMs 1.3 times as long"));
  CHECK(shows(page, "<code>--set /software/gemm=1</code>"));
  CHECK(shows(page, "64 x 128 x 256"));
  CHECK(shows(page, "<code>void gemm&lt;float&gt;</code>"));
  CHECK(shows(page, "<li>a note</li>"));
}

TEST_CASE("A run of which only steps are known shows each explanation that would do") {
  Json run = measured_run();
  run["classes"] = run["ranks"] = run["collectives"] = run["shapes"] = run["kernels"] =
      Json::array();
  run["alternatives"] = {{"explanations",
                          {{{"cause", "a slow node"},
                            {"flags", nullptr},
                            {"step_time_s", 11.9},
                            {"prior", 0.1},
                            {"weight", 0.75},
                            {"basis", "Lin et al. 2025"}}}}};
  const std::string page = page_of_json(run);
  CHECK(shows(page, "a slow node"));
  CHECK(shows(page, "75.0 %"));
  CHECK_FALSE(shows(page, "not explained"));
}

TEST_CASE("The page of a sweep's store has the fastest that fit, and the front") {
  // By hand: variant 1 is fastest but may not fit; 0 is faster than 2 and larger; 3 loses to 2.
  const std::string rows = row_line(0, 1, 2.0, 60e9, "yes") +
                           row_line(1, 2, 1.0, 90e9, "doubtful") +
                           row_line(2, 4, 3.0, 40e9, "yes") + row_line(3, 8, 4.0, 50e9, "tight");
  const Document document = result_of(store_of(rows) + R"({"index":4)", "f.jsonl");
  CHECK(document.json()["rows"] == 4);  // a line without its end is being written
  CHECK(document.json()["fits"] == 4);
  CHECK(document.json()["doubtful"] == 1);
  REQUIRE(document.json()["best"].size() == 3);
  CHECK(document.json()["best"][0]["index"] == 0);
  REQUIRE(document.json()["front"].size() == 2);
  CHECK(document.json()["front"][1]["index"] == 2);
  const std::string page = page_of_store(store_of(rows));
  CHECK(shows(page, "<h1>Sweep of llama</h1>"));
  CHECK(shows(page, "<code>tensor 1</code>"));
  CHECK(shows(page, "What each value leads to"));
}

TEST_CASE("The page of a measured run says in words by how much it differs, or that it does not") {
  Json run = measured_run();  // 12 s, 10 s predicted
  CHECK(shows(page_of_json(run), "<b>20.0 % more</b><span class='r'>2.000 s more than predicted<"));
  run["measured_s"] = 7.5;
  CHECK(shows(page_of_json(run), "<b>25.0 % less</b><span class='r'>2.500 s less than predicted<"));
  run["measured_s"] = 10.0;
  CHECK(shows(page_of_json(run), "<b>as long</b><span class='r'>as predicted<"));
}

TEST_CASE("Idle time of data loading has the colour of data, on the page of a measured run") {
  Json run = measured_run();
  run["classes"][2]["measured_s"] = 0.5;
  const std::string page = page_of_json(run);
  const std::size_t hint = page.find("<title>measured, idle: data loading");
  REQUIRE(hint != std::string::npos);
  const std::string box = page.substr(page.rfind("<rect", hint), hint - page.rfind("<rect", hint));
  CHECK(shows(box, "fill:var(--data)"));
}

TEST_CASE("The page of a run that nothing explains says what the text says") {
  Json run = measured_run();
  run["alternatives"] = {{"inside_range", true}, {"explanations", Json::array()}};
  CHECK(shows(page_of_json(run), ">nothing is left to explain</p>"));
  run["alternatives"]["inside_range"] = false;
  const std::string page = page_of_json(run);
  CHECK(shows(page, ">nothing that was tried explains it; check its unit and what ran</p>"));
  CHECK_FALSE(shows(page, "one of these would do"));  // the head of an empty table
}

// By hand: 10 s are predicted, of which 0.5 % are 50 ms.
TEST_CASE("The page of a run that differs by less than half a percent leaves nothing to explain") {
  Json run = measured_run();
  run["causes"] = Json::array();
  run["measured_s"] = 10.04;
  CHECK(shows(page_of_json(run),
              ">nothing is left to explain: the two differ by less than 0.5 %</p>"));
  run["measured_s"] = 10.06;
  CHECK(shows(page_of_json(run),
              ">None: no change is likelier than the prediction&#39;s own error.</p>"));
}

TEST_CASE("What fits, what may not and what does not are counted apart on the page of a sweep") {
  const std::string rows = row_line(0, 1, 2.0, 60e9, "yes") +
                           row_line(1, 2, 1.0, 90e9, "doubtful") +
                           row_line(2, 4, 3.0, 40e9, "tight") + row_line(3, 8, 4.0, 99e9, "no");
  const std::string page = page_of_store(store_of(rows));
  CHECK(
      shows(page, "<span class='k'>fit</span><b>2</b><span class='r'>1 may not, 1 do not</span>"));
  CHECK(shows(page, "Grey: 3 of 3 variants that fit or may fit."));
}

TEST_CASE("The page of a shard names it and compares its rows with the shard's variants") {
  // By hand: shard 2 of 4 of 9 variants has 2 of them, as the first has the odd one.
  const Json shard = {{"number", 2}, {"of", 4}};
  const std::string row = row_line(3, 1, 2.0, 60e9, "yes");
  const std::string half = page_of_store(store_of(row, Json::array(), 9, shard));
  CHECK(shows(half, "<h1>Sweep of llama, shard 2 of 4</h1>"));
  CHECK(shows(half, "<b>1</b><span class='r'>of 2; the rest is not there; the whole sweep has 9<"));
  const std::string all = row + row_line(4, 2, 3.0, 50e9, "yes");
  const std::string whole = page_of_store(store_of(all, Json::array(), 9, shard));
  CHECK(shows(whole, "<b>2</b><span class='r'>0 impossible; the whole sweep has 9<"));
}

TEST_CASE("Pointers and values of a sweep are listed in the order in which they were asked for") {
  std::string rows;
  Json tensors = Json::array();
  for (int i = 0; i < 70; ++i) {
    const int tensor = 100 - i;  // as text, 100 is before 99
    tensors.push_back(tensor);
    Json row = Json::parse(row_line(i, tensor, 2.0, 60e9, "yes"));
    row["values"] = {{"/plan/zero", 1}, {"/plan/tensor", tensor}};
    rows += row.dump() + "\n";
  }
  const Json vary = {varied("/plan/tensor", tensors), varied("/plan/zero", {3, 1})};
  const Document document = result_of(store_of(rows, vary, 70), "f.jsonl");
  const Json& values = document.json()["values"];
  REQUIRE(values.size() == 65);
  for (int i = 0; i < 64; ++i) {
    CHECK(values[i]["pointer"] == "/plan/tensor");
    CHECK(values[i]["value"] == std::to_string(100 - i));
  }
  CHECK(values[64]["pointer"] == "/plan/zero");
  CHECK(shows(page_of_store(store_of(rows, vary, 70)),
              "and 6 more of /plan/tensor: the first 64 that the store has are listed"));
}

// By hand: 600 rows are cut to every 2nd, at 1,200 to every 4th; 2,000 rows leave 500.
TEST_CASE("The sample of a long store is even: every fourth of 2,000 rows, the first ones too") {
  std::string rows;
  for (int i = 0; i < 2000; ++i) rows += row_line(i, 1, 2.0 + i, 60e9 + i, "yes");
  const Json sample = result_of(store_of(rows), "f.jsonl").json()["others"];
  REQUIRE(sample.size() == 500);
  for (std::size_t i = 0; i < sample.size(); ++i) CHECK(sample[i]["index"] == 4 * i);
}

TEST_CASE("A damaged row of a sweep's store is refused with its line") {
  try {
    result_of(store_of(row_line(0, 1, 2.0, 60e9, "yes") + "{\"index\": 1}\n"), "f.jsonl");
    FAIL("nothing was refused");
  } catch (const InputError& error) {
    CHECK(std::string{error.what()} ==
          "f.jsonl, line 3: expected a row of a sweep, with its values and figures");
  }
}

TEST_CASE("A Parquet store is refused with the call that makes its page, as file and as text") {
  const Scratch scratch;
  const std::string bytes = "PAR1\x15\x04PAR1", file = scratch.write("f.parquet", bytes);
  const std::string refusal =
      ": is a Parquet store, which Python alone writes and reads: orrery.report(PAGE, "
      "orrery.sweep(..., store=PATH)) makes its page";
  CHECK_THROWS_WITH(load_result(file), file + refusal);
  CHECK_THROWS_WITH(result_of(bytes, "f.parquet"), "f.parquet" + refusal);
}

TEST_CASE("Labels of the best points stay inside the picture and cover no other label") {
  ScatterChart chart{.points = {}, .x_title = "days", .y_title = "cost"};
  for (int i = 0; i < 12; ++i) {
    const double at = 1.0 + 0.05 * i;
    chart.points.push_back({"a cluster of nodes " + std::to_string(i),
                            {"", at, at, at},
                            {"", 3 - at, 3 - at, 3 - at},
                            true});
  }
  chart.points.push_back({"far away", {"", 90, 90, 90}, {"", 90, 90, 90}, false});
  const std::string picture = scatter_chart(chart);
  const std::vector<Label> labels = labels_of(picture);
  REQUIRE(labels.size() > 8);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    INFO(labels[i].text);
    const double wide = 6.3 * static_cast<double>(labels[i].text.size());
    CHECK(labels[i].x >= 80);
    CHECK(labels[i].x + wide <= 930.5);
    CHECK(labels[i].y <= 380);
    for (std::size_t k = 0; k < i; ++k) {
      const bool apart =
          std::abs(labels[i].y - labels[k].y) >= 13.9 || labels[i].x + wide <= labels[k].x + 0.1 ||
          labels[k].x + 6.3 * static_cast<double>(labels[k].text.size()) <= labels[i].x + 0.1;
      CHECK(apart);
    }
  }
  // An outlier does not squeeze the best into a corner: it is counted instead.
  CHECK(shows(picture, "1 more beyond the axes."));
}

TEST_CASE("Figures that the table of a page leaves out are counted in its title") {
  Json document = Json{{"timeline", Json::array({1, 2})}, {"steps", Json::array()}};
  for (int i = 0; i < 40; ++i) document["steps"].push_back(i);
  CHECK(all_figures(document).find("<summary>All figures of the document<") != std::string::npos);
  CHECK(all_figures(document).find("/timeline") == std::string::npos);
  for (int i = 0; i < 3; ++i) document["steps"].push_back(Json{{"a", i}, {"b", i}});
  const std::string listed = all_figures(document);
  CHECK(listed.find("without 6 that its JSON has more") != std::string::npos);
  CHECK(listed.find("/steps/39") != std::string::npos);
  CHECK(listed.find("/steps/40") == std::string::npos);
  for (int i = 0; i < 1'500; ++i) document[fmt::format("key_{}", i)] = i;
  CHECK(all_figures(document).find("without 46 that its JSON has more") != std::string::npos);
}

TEST_CASE("Axes of dollars have short round ticks") {
  const RangeChart chart{.ranges = {{"dollars", 1.1e8, 1.2e8, 1.5e8}}, .words = dollar_words};
  CHECK(shows(range_chart(chart), ">$50M<"));
}

}  // namespace orrery::scenarios
