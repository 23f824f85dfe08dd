#include "scenarios/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <span>
#include <sstream>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/page/charts.hpp"
#include "scenarios/page/html.hpp"
#include "scenarios/page/run_section.hpp"
#include "scenarios/page/sweep_section.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

constexpr const char* style_sheet = R"css(
:root{color-scheme:light dark;--paper:#fff;--ink:#1f2733;--faint:#5f6b7a;--line:#e3e7ec;
--card:#f6f8fa;--lane:#eef1f4;--good:#3a8f5c;--loss:#c4693a;--gain:#3a8f5c;--total:#1f2733;
--band:#b9cfe8;--limit:#b3372f;--memory:#a9c3e0;--unlisted:#9aa3ae;--bad:#b3372f;--warn:#9a6a00;
--over:rgba(31,39,51,.13)}
@media (prefers-color-scheme:dark){:root{--paper:#14181e;--ink:#e6eaf0;--faint:#9aa6b5;
--line:#2b323c;--card:#1c222a;--lane:#232a33;--good:#5fbf87;--loss:#e08a5b;--gain:#5fbf87;
--total:#e6eaf0;--band:#38577d;--limit:#f07b72;--memory:#3f628c;--unlisted:#7d8794;--bad:#f07b72;
--warn:#e0b350;--over:rgba(230,234,240,.14)}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1060px;margin:0 auto;padding:28px 24px 60px}
h1{font-size:26px;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:21px;margin:0 0 2px;overflow-wrap:anywhere}
h3{font-size:15px;margin:30px 0 8px}
p{margin:6px 0}
.sub{color:var(--faint);margin:0 0 14px;overflow-wrap:anywhere}
section{border-top:1px solid var(--line);margin-top:36px;padding-top:26px}
h1+section{border-top:0;margin-top:0;padding-top:0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(205px,1fr));gap:10px;margin:16px 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:11px 14px}
.card b{display:block;font-size:22px;line-height:1.25;font-variant-numeric:tabular-nums;
overflow-wrap:anywhere}
.card .k{color:var(--faint);font-size:12.5px}.card .r{color:var(--faint);font-size:13px}
.first b{font-size:28px}
.good b,.good{color:var(--good)}.bad b,.bad{color:var(--bad)}.warn b,.warn{color:var(--warn)}
.card .k,.card .r{color:var(--faint)}
svg{width:100%;height:auto;display:block;margin:4px 0}
svg text{font-size:12px;font-family:inherit}
.ink{fill:var(--ink)}.strong{fill:var(--ink);font-weight:600}.faint{fill:var(--faint)}
text.limit{fill:var(--limit)}line.limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 3}
.grid{stroke:var(--line)}.step{stroke:var(--faint);stroke-width:1}.over{stroke:var(--over)}
.whisker{stroke:var(--faint);stroke-width:1.5}.wire{stroke:var(--faint);stroke-width:2}
.part{fill:var(--paper);stroke:var(--line)}.node{fill:var(--card);stroke:var(--line)}
.full{stroke:var(--limit);stroke-width:2}
.halo{paint-order:stroke;stroke:var(--paper);stroke-width:3.5px;stroke-linejoin:round}
.point .whisker{opacity:.7}.lead{stroke:var(--faint);stroke-width:.7;opacity:.6}
.other circle{opacity:.45}.best circle{fill:var(--good)}.other circle{fill:var(--unlisted)}
.wide{overflow-x:auto;margin:8px 0}
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}
th{text-align:left;font-weight:600;color:var(--faint);border-bottom:1px solid var(--line);
padding:6px 10px 6px 0;vertical-align:bottom}
td{border-bottom:1px solid var(--line);padding:6px 10px 6px 0;vertical-align:top}
td.n,th.n{text-align:right;white-space:nowrap}
td:first-child{min-width:150px}td.n:first-child{min-width:0;width:1%}
td code{font-size:12px;overflow-wrap:anywhere}
.field{white-space:nowrap}
code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.bar{min-width:150px;white-space:nowrap}
.bar i{display:block;height:7px;border-radius:2px;background:var(--gemm);margin-top:3px}
ul,ol{margin:6px 0;padding-left:20px}ol{padding-left:30px}td .note{font-size:inherit}li{margin:3px 0;overflow-wrap:anywhere}
.note{color:var(--faint);font-size:13.5px}
details{margin:14px 0}summary{cursor:pointer;color:var(--faint)}
.raw{max-height:420px;overflow:auto}
footer{margin-top:44px;color:var(--faint);font-size:12.5px}
@media print{:root{--paper:#fff;--ink:#111;--faint:#444;--line:#ccc;--card:#fff;--lane:#f2f2f2;
--total:#111;--band:#b9cfe8;--memory:#a9c3e0;--good:#2b7448;--loss:#c4693a;--gain:#2b7448;
--limit:#b3372f;--bad:#b3372f;--warn:#7d5600;--over:rgba(0,0,0,.13)}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}
main{max-width:none;padding:0}details{display:none}.wide{overflow:visible}
section{break-before:page;border-top:0;margin-top:0;padding-top:0}section:first-of-type{break-before:auto;margin-top:18px}
h3{break-after:avoid}svg,.card,tr{break-inside:avoid}.cards{grid-template-columns:repeat(3,1fr)}
body{font-size:12.5px}table{font-size:11px}.card b{font-size:18px}.first b{font-size:21px}.bar{min-width:90px}@page{margin:14mm}}
)css";

/// Variables of the colours of classes; print takes the light ones.
std::string colour_variables() {
  std::string light, dark;
  for (const PageColour& each : page_colours()) {
    light += fmt::format("--{}:{};", each.name, each.light);
    dark += fmt::format("--{}:{};", each.name, each.dark);
  }
  return fmt::format(":root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n",
                     light, dark);
}

// ---- Sections.

enum class PageKind : std::uint8_t {
  simulate,
  what_if,
  plan,
  buy,
  train,
  check,
  compare_run,
  compare_traces,
  sweep
};

std::optional<PageKind> kind_of_document(const Node& root) {
  if (!root.is_object()) return std::nullopt;
  if (root.has("orrery_sweep")) return PageKind::sweep;
  if (root.has("waterfall")) return PageKind::simulate;
  if (root.has("variants")) return PageKind::what_if;
  if (root.has("plans") && root.has("searched")) return PageKind::plan;
  if (root.has("choices")) return PageKind::buy;
  if (root.has("ettr")) return PageKind::train;
  if (root.has("claims") && root.has("command")) return PageKind::check;
  if (root.has("causes") && root.has("measured_s")) return PageKind::compare_run;
  if (root.has("largest_differences")) return PageKind::compare_traces;
  return std::nullopt;
}

PageKind known_kind(const Document& document) {
  const Node root = document.root();
  if (root.is_object() && root.has("error")) {
    root.fail("is an error, not an answer; ask again and give its answer");
  }
  const auto kind = kind_of_document(root);
  if (!kind) {
    root.fail(
        "is no answer that a page shows; expected what --json of simulate, plan, buy, train, "
        "compare or check prints, or the store of a sweep");
  }
  return *kind;
}

std::string file_stem(const Document& document) {
  std::string name = document.name();
  if (const std::size_t slash = name.rfind('/'); slash != name.npos) name = name.substr(slash + 1);
  return name.ends_with(".json") ? name.substr(0, name.size() - 5) : name;
}

/// "llama3-70b-64-h100", or the file's name where the document has none.
std::string title_of_document(const Document& document) {
  const Node root = document.root();
  const PageKind kind = known_kind(document);
  const std::string model = words(root, "model"), cluster = words(root, "cluster");
  switch (kind) {
    case PageKind::simulate:
      if (!model.empty()) return fmt::format("{} on {}", model, cluster);
      return file_stem(document);
    case PageKind::what_if:
      return "What if: " + words(root, "scenario");
    case PageKind::plan:
      return fmt::format("Plans for {} on {}", model, cluster);
    case PageKind::buy:
      return fmt::format("Clusters for {}", model);
    case PageKind::train:
      return fmt::format("Training {} on {}", model, cluster);
    case PageKind::check:
      return "Claims of " + file_stem(document);
    case PageKind::compare_run:
      return "A run of " + words(root, "scenario");
    case PageKind::compare_traces:
      return "Measured against predicted: " + file_stem(document);
    case PageKind::sweep:
      return sweep_title(root);
  }
  throw ContractError{"a kind of document has no title"};
}

std::string money_card_value(const Node& root, std::string_view key) {
  const auto cost = figure_if(root, key);
  return cost ? dollar_words(*cost) : "no price known";
}

std::string memory_section(const Node& root) {
  StackedChart chart{.parts = {}, .words = size_words};
  for (const auto& [kind, bytes] : root["memory"].members()) {
    chart.parts.push_back({label_of(kind), bytes.as<double>(), colour_of(kind)});
  }
  if (const auto available = figure_if(root, "available_memory_bytes")) {
    chart.limit = *available;
    chart.limit_label = "GPU: " + size_words(*available);
  }
  const Node range = root["peak_memory_range_bytes"];
  chart.range = std::pair{figure_at(range, "p10"), figure_at(range, "p90")};
  return tag("h3", "Memory of the fullest GPU at its peak") + stacked_chart(chart) +
         tag("p",
             fmt::format("The whisker is the range of 8 of 10 measured peaks: {} to {}.",
                         size_words(chart.range->first), size_words(chart.range->second)),
             "class='note'");
}

std::string network_section(const Node& root) {
  const Node busy = root["busy"], network = root["network"];
  const std::vector<Node> links = network["links"].elements();
  double full = 0;
  for (const Node& each : links) full += figure_at(each, "alike");
  std::string text = tag("h3", "What is connected, and how busy it is");
  text += load_chart({.gpu = words(root, "gpu", "GPU"),
                      .fabric = words(root, "fabric", "network between nodes"),
                      .nodes = figure_if(root, "nodes").value_or(1),
                      .gpus_per_node = figure_if(root, "gpus_per_node").value_or(1),
                      .nics_per_node = figure_if(root, "nics_per_node").value_or(0),
                      .sm = figure_at(busy, "sm"),
                      .nvlink = figure_at(busy, "nvlink"),
                      .nic = figure_at(busy, "nic"),
                      .links_over_capacity = full});
  text += tag(
      "p",
      fmt::format("Shares of the step, of the slowest rank. Traffic was priced {}: {}.",
                  words(network, "evaluation") == "static" ? "by cost models" : "on shared links",
                  words(network, "why")),
      "class='note'");
  if (links.empty()) return text;
  constexpr std::size_t most_links = 12;  // more are among the figures of the document
  HtmlTable table{{"link", ">alike", ">over capacity for"}};
  for (const Node& each : std::span{links}.first(std::min(links.size(), most_links))) {
    table.add({markup(words(each, "name")), count_words(figure_at(each, "alike")),
               time_words(figure_at(each, "over_capacity_s"))});
  }
  text += table.html();
  if (links.size() <= most_links) return text;
  return text + tag("p", fmt::format("and {} more", links.size() - most_links), "class='note'");
}

std::string evidence_words(const Node& root) {
  const Node evidence = root["evidence"];
  std::string kinds;
  for (const std::string& each : sentences(evidence, "kinds")) {
    kinds += (kinds.empty() ? "" : ", ") + each;
  }
  std::string text = fmt::format("The range comes from {} published runs",
                                 count_words(figure_at(evidence, "runs")));
  if (!kinds.empty()) text += fmt::format(" ({})", kinds);
  if (const std::string stack = words(evidence, "stack"); !stack.empty()) text += " of " + stack;
  if (const std::string gpu = words(evidence, "gpu"); !gpu.empty()) text += " on " + gpu;
  const std::vector<Node> wider = evidence["widened_by"].elements();
  for (std::size_t i = 0; i < wider.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? ", widened by " : ", ", words(wider[i], "step"));
  }
  return text + ".";
}

std::string simulate_cards(const Node& root) {
  const Node range = root["uncertainty"];
  const double step = figure_at(root, "step_time_s"), gpus = figure_at(root, "ranks");
  const auto [fit, fit_css] = fit_answer(words(root, "fit"));
  std::vector<Card> all{
      {"one training step", time_words(step),
       fmt::format("{} to {} in 8 of 10 cases", time_words(figure_at(range, "p10")),
                   time_words(figure_at(range, "p90"))),
       "first"},
      {"throughput",
       fmt::format("{} {}/s", count_words(std::round(figure_at(root, "tokens_per_s"))),
                   words(root, "unit", "tokens")),
       fmt::format("{} of each of {} GPUs",
                   count_words(std::round(figure_at(root, "tokens_per_s_per_gpu"))),
                   count_words(gpus))},
      {"MFU", share_text(figure_at(root, "mfu")),
       fmt::format("{} TFLOP/s of a GPU",
                   count_words(std::round(figure_at(root, "model_tflops_per_gpu"))))},
      {"memory", fit,
       fmt::format("{} at the peak; {:.0f} % of measured peaks would fit",
                   size_words(figure_at(root, "peak_memory_bytes")),
                   100 * figure_at(root, "fit_probability")),
       fit_css},
      {"cost of a step", money_card_value(root, "cost_usd_per_step"),
       fmt::format("{} of energy", format(Energy{figure_at(root, "energy_j_per_step")}))},
      {"waiting most on", label_of(words(root, "bottleneck")),
       fmt::format("bubble {}", share_text(figure_at(root, "bubble_fraction")))}};
  if (const auto days = figure_if(root, "days")) {
    all.push_back(
        {tokens_text(figure_at(root, "tokens")), days_in_words(*days),
         fmt::format("{}, {} GPU-hours, without failures", money_card_value(root, "cost_usd"),
                     hours_text(figure_at(root, "gpu_hours")))});
  }
  return cards(all);
}

/// "precision=bf16 takes 1.67 s; this plan takes 76.0 ms more for memory-bound kernels".
std::vector<std::string> plainer_sentences(const Node& root) {
  std::vector<std::string> all;
  const auto choices = root.find("plainer_choices");
  if (!choices) return all;
  for (const Node& each : choices->elements()) {
    std::string parts;
    for (const Node& part : each["parts"].elements()) {
      const double time = figure_at(part, "time_s");
      parts +=
          fmt::format("{} {} {} for {}", parts.empty() ? "; this plan takes" : ",",
                      time_words(std::abs(time)), time < 0 ? "less" : "more", words(part, "name"));
    }
    const std::string reason = words(each, "reason");
    all.push_back(fmt::format("{} takes {}{}{}{}", words(each, "choice"),
                              time_words(figure_at(each, "step_time_s")), parts,
                              reason.empty() ? "" : "; ", reason));
  }
  return all;
}

std::string simulate_section(const Node& root) {
  std::string text;
  std::string sub = words(root, "scenario");
  if (root.has("gpu")) {
    sub += fmt::format("{}{} x {} · {} · {}", sub.empty() ? "" : " · ",
                       count_words(figure_at(root, "ranks")), words(root, "gpu"),
                       words(root, "software"), words(root, "plan_title"));
  }
  if (!sub.empty()) text += tag("p", sub, "class='sub'");
  text += simulate_cards(root);
  RangeChart range{.ranges = {range_of(root["uncertainty"], "step")}, .words = time_words};
  if (const auto measured = root.find("measured")) {
    range.mark = figure_at(*measured, "step_time_s");
    range.mark_label = "measured " + time_words(*range.mark);
  }
  text += tag("h3", "How certain the step is") + range_chart(range);
  text += tag("p", evidence_words(root), "class='note'");
  std::vector<std::pair<std::string, double>> parts;
  for (const Node& each : root["waterfall"].elements()) {
    parts.emplace_back(words(each, "name"), figure_at(each, "time_s"));
  }
  text += tag("h3", "From the ideal machine to this step") + waterfall_chart(parts);
  text += tag("h3", "Timeline, and memory below it");
  if (const auto timeline = root.find("timeline")) {
    text += timeline_chart(*timeline, figure_at(root, "step_time_s"),
                           figure_at(root, "available_memory_bytes"));
    text += tag("p",
                "A column is an equal part of the step; its height is the share of it in which the "
                "queue works. The first rank of each stage, of at most six stages. Of "
                "the memory, buffers change; context and fragmentation are taken "
                "as constant.",
                "class='note'");
  } else {
    text += tag("p", "The document has no timeline: orrery simulate ... --timeline --json adds it.",
                "class='note'");
  }
  text += memory_section(root) + network_section(root);
  std::vector<std::string> open;
  for (const Node& each : root["open_questions"].elements()) {
    open.push_back(
        fmt::format("{} ({:+.1f} %)", words(each, "question"), figure_at(each, "change_pct")));
  }
  text += list_section("Plainer choices that are not slower", plainer_sentences(root));
  text += list_section("What to find out first", open);
  text += list_section("What was assumed", sentences(root, "assumptions"));
  text += list_section("What keeps it from being more certain", sentences(root, "limits"));
  return text;
}

std::string changes_words(const Node& changes) {
  std::string text;
  for (const auto& [pointer, value] : changes.members()) {
    text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", pointer,
                        value.is_string() ? value.as<std::string>() : value.json().dump());
  }
  return text.empty() ? "as stated" : text;
}

std::string what_if_section(const Node& root) {
  std::vector<Node> rows{root["stated"]};
  for (const Node& each : root["variants"].elements()) rows.push_back(each);
  double most = 0;
  for (const Node& each : rows) most = std::max(most, figure_if(each, "step_time_s").value_or(0));
  HtmlTable table{{"changed", "step", ">against stated", ">MFU", ">memory", "fit", ">$ a step"}};
  for (const Node& each : rows) {
    const auto step = figure_if(each, "step_time_s");
    const std::string changed = code_cell(changes_words(each["changes"]));
    if (!step) {
      table.add({changed, markup(words(each, "refused")), "", "", "", "", ""});
      continue;
    }
    const auto change = figure_if(each, "change_pct");
    const auto cost = figure_if(each, "cost_usd_per_step");
    table.add({changed, bar_cell(time_words(*step), *step, most),
               change ? fmt::format("{:+.1f} %", *change) : "", share_text(figure_at(each, "mfu")),
               size_words(figure_at(each, "peak_memory_bytes")),
               markup(fit_answer(words(each, "fit")).first), cost ? dollar_words(*cost) : ""});
  }
  return tag("h3", "Variants") + table.html();
}

/// The fields of plans, as --plan takes them, and those that all have.
struct ComparedFlags {
  std::vector<std::vector<std::string>> differing;  // by plan
  std::string common;
};

ComparedFlags flags_of_plans(const std::vector<Node>& plans) {
  std::vector<std::vector<std::string>> fields;
  for (const Node& each : plans) {
    auto& own = fields.emplace_back();
    const std::string flag = words(each, "flag");
    for (const std::string_view field : split(flag, ',')) own.emplace_back(field);
  }
  ComparedFlags found;
  const auto everywhere = [&](const std::string& field) {
    return std::ranges::all_of(fields,
                               [&](const auto& own) { return std::ranges::count(own, field) > 0; });
  };
  for (const auto& own : fields) {
    auto& differing = found.differing.emplace_back();
    for (const std::string& field : own) {
      const bool shared = fields.size() > 1 && everywhere(field);
      if (!shared) differing.push_back(field);
      if (shared && &own == &fields.front()) {
        found.common += (found.common.empty() ? "" : ", ") + field;
      }
    }
  }
  return found;
}

/// Fields on lines that break between them.
std::string fields_cell(const std::vector<std::string>& fields) {
  std::string text;
  for (const std::string& each : fields)
    text += fmt::format("<span class='field'>{}</span> ", markup(each));
  return "<code>" + text + "</code>";
}

std::string plan_table(const Node& root, const std::vector<Node>& plans) {
  const double available = figure_at(root, "available_memory_bytes");
  double slowest = 0;
  for (const Node& each : plans) slowest = std::max(slowest, figure_at(each, "step_time_s"));
  HtmlTable table{{">", "plan", "step", "memory of " + size_words(available), ">MFU", ">$ a step",
                   "why not best"}};
  const ComparedFlags flags = flags_of_plans(plans);
  std::size_t rank = 0;
  for (const Node& each : plans) {
    const double step = figure_at(each, "step_time_s"),
                 bytes = figure_at(each, "peak_memory_bytes");
    const auto cost = figure_if(each, "cost_usd_per_step");
    const bool good = each.value_or("as_good_as_best", false);
    std::string why = words(each, "why");
    if (++rank == 1)
      why = "best";
    else if (good)
      why = "within the error of the best; " + why;
    table.add({std::to_string(rank), fields_cell(flags.differing[rank - 1]),
               bar_cell(time_words(step), step, slowest, good ? "var(--good)" : ""),
               bar_cell(size_words(bytes), std::min(bytes, available), available,
                        fit_answer(words(each, "fit")).second == "good" ? "var(--memory)"
                                                                        : "var(--limit)"),
               share_text(figure_at(each, "mfu")), cost ? dollar_words(*cost) : "", markup(why)});
  }
  return table.html() +
         (flags.common.empty() ? "" : tag("p", "All of them: " + flags.common, "class='note'"));
}

std::string value_words(const Node& value) {
  if (value.is_string()) return value.as<std::string>();
  if (!value.is_array()) return value.json().dump();
  std::string text;
  for (const Node& each : value.elements()) text += (text.empty() ? "" : ", ") + value_words(each);
  return text;
}

/// "65 within the error of the best, and up to 2,340 more".
std::string ties_words(const Node& as_good) {
  double plans = 0;
  for (const Node& each : as_good["classes"].elements()) plans += figure_at(each, "plans");
  const double more = figure_at(as_good, "at_most_more");
  return fmt::format("{} within the error of the best{}", count_words(plans),
                     more > 0 ? fmt::format(", and up to {} more", count_words(more)) : "");
}

/// Of a search for the least time that names no stack: what each plan loses on those that are
/// fitted to runs.
std::string stacks_section(const Node& root, std::size_t plans) {
  const auto over = root.find("over_stacks");
  if (!over || !over->is_object() || words(root, "objective") != "time") return {};
  const auto number_of = [&](const Node& plan) {
    return static_cast<std::size_t>(plan.integer(1, static_cast<std::int64_t>(plans)) - 1);
  };
  std::vector<std::string> titles{"plan"};
  for (std::size_t i = 0; i < plans; ++i) titles.push_back(fmt::format(">{}", i + 1));
  HtmlTable table{titles};
  for (const Node& stack : (*over)["stacks"].elements()) {
    std::vector<std::optional<double>> steps(plans);
    for (const Node& each : stack["plans"].elements()) {
      steps[number_of(each["plan"])] = figure_at(each, "static_step_time_s");
    }
    const std::size_t best = number_of(stack["best_plan"]);
    if (!steps[best]) stack["best_plan"].fail("is not among the plans that it runs");
    std::vector<std::string> cells{markup(words(stack, "software"))};
    for (std::size_t i = 0; i < plans; ++i) {
      cells.push_back(i == best  ? tag("strong", time_words(*steps[i]))
                      : steps[i] ? fmt::format("{:+.1f} %", 100 * (*steps[i] / *steps[best] - 1))
                                 : "–");
    }
    table.add(cells);
  }
  const double robust = figure_at(*over, "robust_plan");
  return tag("h3", "The same plans on each fitted stack") + table.html() +
         tag("p",
             fmt::format(
                 "No stack was named. Before traffic shares links: each stack's best of "
                 "these plans, and how much longer the others take; – is not run or does "
                 "not fit. Plan {:.0f} runs on most and loses least where it runs: {:.1f} % "
                 "at most.",
                 robust, figure_at(*over, "robust_worst_excess_pct")),
             "class='note'");
}

std::string plan_section(const Node& root) {
  const std::vector<Node> plans = root["plans"].elements();
  const Node counts = root["counts"];
  std::string text =
      tag("p",
          fmt::format("{} · {} sequences of {} tokens a step · {} · minimising {}",
                      words(root, "software"), count_words(figure_at(root, "global_batch")),
                      count_words(figure_at(root, "seq_len")), words(root, "precision"),
                      words(root, "objective")),
          "class='sub'");
  if (plans.empty()) {
    return text + cards({{"answer", "no plan fits", words(root, "reason"), "bad first"}}) +
           list_section("What was assumed", sentences(root, "assumptions"));
  }
  const Node best = plans.front();
  const auto expected = figure_if(root, "expected_step_time_s");
  const auto gap = figure_if(root, "gap");
  const auto [fit, css] = fit_answer(words(best, "fit"));
  const auto cost = figure_if(best, "cost_usd_per_step");
  std::vector<Card> all{
      {"best plan's step", time_words(figure_at(best, "step_time_s")),
       expected ? fmt::format("expect {}: the best of many is lucky", time_words(*expected)) : "",
       "first"},
      {"MFU", share_text(figure_at(best, "mfu")),
       fmt::format("{} tokens/s", count_words(std::round(figure_at(best, "tokens_per_s"))))},
      {"memory", fit, size_words(figure_at(best, "peak_memory_bytes")), css},
      {"plans considered", count_words(figure_at(counts, "considered")),
       fmt::format("{} fit, {}", count_words(figure_at(counts, "fit")),
                   ties_words(root["as_good"]))},
      {"how good the best is",
       root.value_or("proven", false) ? "proven"
       : gap                          ? fmt::format("{:.1f} %", 100 * *gap)
                                      : "not bounded",
       root.value_or("proven", false)          ? "no searched plan is better"
       : root.value_or("proven_static", false) ? "proven before traffic shares links"
       : gap                                   ? "at most so much may be left"
                                               : "the search gives no bound"}};
  if (cost) {
    all.push_back({"cost of a step", dollar_words(*cost),
                   fmt::format("{} GPUs", count_words(figure_at(best, "gpus")))});
  }
  text += cards(all);
  text += tag("h3", "The best plan, as --plan takes it");
  text += fmt::format("<p>{}</p>\n", code_cell(words(best, "flag")));
  text += tag("h3", "Plans compared") + plan_table(root, plans);
  text += tag("p",
              fmt::format("Green bars cannot be told apart from the best: differences below {:.1f} "
                          "% (plans cut alike: {:.1f} %) are within the error.",
                          figure_at(root, "indistinguishable_pct"),
                          figure_at(root, "indistinguishable_alike_pct")),
              "class='note'");
  text += stacks_section(root, plans.size());
  HtmlTable tried{{"field", "values tried"}};
  for (const auto& [key, values] : root["searched"].members()) {
    tried.add({code_cell(key), markup(value_words(values))});
  }
  text += tag("h3", "What was tried") + tried.html();
  HtmlTable left{{"field", "its value in all plans", "why it was not varied"}};
  for (const Node& each : root["not_searched"].elements()) {
    left.add({code_cell(words(each, "field")), markup(value_words(each["value"])),
              markup(words(each, "why"))});
  }
  text += "<details><summary>What was not varied</summary>" + left.html() + "</details>\n";
  return text + list_section("What was assumed", sentences(root, "assumptions"));
}

std::string verdict_card_rest(const Node& asked) {
  return fmt::format("kept in {:.0f} of 100 cases, {:.0f} wanted",
                     100 * figure_at(asked, "probability"), 100 * figure_at(asked, "confidence"));
}

std::string train_cards(const Node& root) {
  const ChartRange days = range_of(root["days"], ""), hours = range_of(root["gpu_hours"], "");
  const ChartRange uptime = range_of(root["ettr"], ""), energy = range_of(root["energy_mwh"], "");
  std::vector<Card> all{
      {"whole training", days_in_words(days.p50),
       fmt::format("{} to {} in 8 of 10 cases", days_in_words(days.p10), days_in_words(days.p90)),
       "first"}};
  if (const auto cost = root.find("cost_usd")) {
    const ChartRange dollars = range_of(*cost, "");
    all.push_back({"cost", dollar_words(dollars.p50),
                   fmt::format("{} to {}", dollar_words(dollars.p10), dollar_words(dollars.p90)),
                   "first"});
  } else {
    all.push_back({"cost", "no price known", "state /run/price or a cluster's price", "first"});
  }
  for (const char* key : {"deadline", "budget"}) {
    const auto asked = root.find(key);
    if (!asked) continue;
    const bool met = figure_at(*asked, "probability") >= figure_at(*asked, "confidence");
    const std::string limit = asked->has("days") ? days_in_words(figure_at(*asked, "days"))
                                                 : dollar_words(figure_at(*asked, "usd"));
    all.push_back({fmt::format("{} of {}", key, limit), met ? "kept" : "not kept",
                   verdict_card_rest(*asked), met ? "good" : "bad"});
  }
  all.push_back({"GPU-hours", hours_text(hours.p50),
                 fmt::format("{} to {}", hours_text(hours.p10), hours_text(hours.p90))});
  const double often = figure_at(root["interruptions"], "p50");
  all.push_back({"uptime", share_text(uptime.p50),
                 often < 0.5
                     ? fmt::format("{:.2g} interruptions to be expected",
                                   figure_at(root["interruptions"], "mean"))
                     : fmt::format("about {} interruptions", count_words(std::round(often)))});
  const bool large = energy.p50 >= 1e4;
  const double co2 = figure_at(root["co2_t"], "p50");
  all.push_back({"energy",
                 fmt::format("{:.4g} {}", energy.p50 / (large ? 1000 : 1), large ? "GWh" : "MWh"),
                 co2 >= 1000 ? count_words(std::round(co2)) + " t of CO2"
                             : fmt::format("{:.3g} t of CO2", co2)});
  const std::string fit = words(root, "fit", "yes");
  if (fit == "doubtful" || fit == "no") {
    const auto [answer, css] = fit_answer(fit);
    all.push_back({"memory", answer,
                   fmt::format("{:.0f} % of measured peaks would fit",
                               100 * root.value_or("fit_probability", 0.0)),
                   css});
  }
  return cards(all);
}

/// Stages of a restart are one part.
std::vector<ChartBar> ledger_parts(const Node& ledger) {
  std::vector<ChartBar> parts;
  for (const auto& [cause, share] : ledger.members()) {
    const std::string name = cause.starts_with("restart") ? "restarts" : cause;
    const auto same = std::ranges::find(parts, name, &ChartBar::label);
    if (same == parts.end()) {
      parts.push_back({name, share.as<double>(), ""});
    } else {
      same->value += share.as<double>();
    }
  }
  std::erase_if(parts, [](const ChartBar& each) { return each.value < 5e-4; });
  const char* colours[] = {"gemm", "tp",         "dp",        "pp",   "optimizer", "ep",
                           "cp",   "other_comm", "attention", "norm", "other",     "host"};
  std::size_t next = 0;
  for (ChartBar& each : parts) {
    each.colour = each.label == "useful"        ? "var(--good)"
                  : each.label == "unexplained" ? "var(--unlisted)"
                                                : colour_of(colours[next++ % std::size(colours)]);
  }
  return parts;
}

std::string train_section(const Node& root) {
  std::string text =
      tag("p",
          fmt::format("{} · {} · {} · {} simulated runs", words(root, "scenario"),
                      words(root, "software"), tokens_text(figure_at(root, "tokens")),
                      count_words(figure_at(root, "samples"))),
          "class='sub'");
  text += train_cards(root);
  RangeChart days{.ranges = {range_of(root["days"], "days")}, .words = days_in_words};
  const double alone = figure_at(root["alone"], "days");
  days.ranges.push_back({"never interrupted", alone, alone, alone});
  if (const auto deadline = root.find("deadline")) {
    days.mark = figure_at(*deadline, "days");
    days.mark_label = "deadline " + days_in_words(*days.mark);
  }
  text += tag("h3", "How long") + range_chart(days);
  if (const auto cost = root.find("cost_usd")) {
    RangeChart dollars{.ranges = {range_of(*cost, "dollars")}, .words = dollar_words};
    if (const auto budget = root.find("budget")) {
      dollars.mark = figure_at(*budget, "usd");
      dollars.mark_label = "budget " + dollar_words(*dollars.mark);
    }
    text += tag("h3", "How much") + range_chart(dollars);
    if (const auto price = root.find("price")) {
      text += tag("p",
                  fmt::format("At {} for a GPU-hour of {} GPUs: {}.",
                              format(Money{figure_at(*price, "usd_per_gpu_hour")}),
                              count_words(figure_at(*price, "gpus")), words(*price, "source")),
                  "class='note'");
    }
  }
  StackedChart ledger{.parts = ledger_parts(root["ledger"]), .words = percent_words};
  text += tag("h3", "Where the time goes") + stacked_chart(ledger);
  std::vector<ChartBar> inputs;
  for (const Node& each : root["sensitivity"].elements()) {
    inputs.push_back({words(each, "input"), figure_at(each, "ln_p90_over_p10"), "var(--gemm)"});
  }
  text += tag("h3", "What the range comes from") +
          bar_chart(inputs, [](double part) { return fmt::format("x {:.2f}", std::exp(part)); });
  text += tag("p",
              "How far each alone spreads the days: the 90th over the 10th percentile, bars by its "
              "logarithm.",
              "class='note'");
  HtmlTable phases{{">tokens", ">sequence", ">batch", ">GPUs", ">steps", ">step", ">MFU",
                    ">days if never interrupted"}};
  for (const Node& each : root["phases"].elements()) {
    phases.add({tokens_text(figure_at(each, "tokens")), count_words(figure_at(each, "seq_len")),
                count_words(figure_at(each, "global_batch")), count_words(figure_at(each, "gpus")),
                count_words(figure_at(each, "steps")), time_words(figure_at(each, "step_time_s")),
                share_text(figure_at(each, "mfu")),
                fmt::format("{:.1f}", figure_at(each, "days_alone"))});
  }
  text += tag("h3", "Phases") + phases.html();
  const Node compared = root["compared"];
  text +=
      tag("p",
          fmt::format("{} published runs needed {:.2f} to {:.2f} times the hours of such a plan "
                      "alone.",
                      count_words(figure_at(compared, "runs")), figure_at(compared, "ratio_p10"),
                      figure_at(compared, "ratio_p90")),
          "class='note'");
  return text + list_section("What was assumed", sentences(root, "assumptions"));
}

std::string buy_cards(const Node& root, const std::vector<Node>& choices) {
  const Node best = choices.front();
  const ChartRange days = range_of(best["days"], "");
  const auto cost = best.find("cost_usd");
  const bool meets = root.value_or("meets", false);
  std::vector<Card> all{
      {meets ? "best that meets all" : "nearest", words(best, "cluster"),
       fmt::format("{} GPUs", count_words(figure_at(best, "gpus"))),
       meets ? "first" : "first warn"},
      {"days", days_in_words(days.p50),
       fmt::format("{} to {} in 8 of 10 cases", days_in_words(days.p10), days_in_words(days.p90))}};
  if (cost) {
    const ChartRange dollars = range_of(*cost, "");
    all.push_back({"cost", dollar_words(dollars.p50),
                   fmt::format("{} to {}", dollar_words(dollars.p10), dollar_words(dollars.p90))});
  } else {
    all.push_back({"cost", "no price known", words(best, "why_no_price")});
  }
  std::size_t meeting = 0;
  for (const Node& each : choices) meeting += each.value_or("meets", false) ? 1 : 0;
  all.push_back({"clusters that meet all", fmt::format("{} of {}", meeting, choices.size()),
                 fmt::format("{} more cannot run it", root["impossible"].elements().size())});
  return cards(all);
}

/// Clusters with their ranges and prices; what several share as a price's source is written once.
class ClusterTable {
 public:
  /// sources  those so far; a new one is added
  void add(const Node& choice, std::vector<std::string>& sources) {
    const ChartRange days = range_of(choice["days"], "");
    const auto cost = choice.find("cost_usd");
    const auto price = choice.find("price");
    const ChartRange dollars = cost ? range_of(*cost, "") : ChartRange{};
    std::string source = price ? words(*price, "source") : words(choice, "why_no_price");
    if (price && price->value_or("outdated", false)) source += " (old)";
    const std::string indication = price ? words(*price, "indicative") : "";
    const std::string about = indication.empty() ? "" : "~";
    if (!indication.empty()) source += fmt::format("; {}: an indication", indication);
    auto found = std::ranges::find(sources, source);
    if (found == sources.end()) found = sources.insert(sources.end(), source);
    table_.add(
        {markup(words(choice, "cluster")), count_words(figure_at(choice, "gpus")),
         fmt::format("{:.1f}", days.p50), fmt::format("{:.1f} to {:.1f}", days.p10, days.p90),
         cost ? about + dollar_words(dollars.p50) : "",
         cost ? fmt::format("{} to {}", dollar_words(dollars.p10), dollar_words(dollars.p90)) : "",
         price ? about + format(Money{figure_at(*price, "usd_per_gpu_hour")}) : "",
         std::to_string(found - sources.begin() + 1), share_text(figure_at(choice, "mfu")),
         choice.value_or("meets", false) ? "<span class='good'>yes</span>"
                                         : "<span class='bad'>no</span>"});
  }
  std::string html() const { return table_.html(); }

 private:
  HtmlTable table_{{"cluster", ">GPUs", ">days", ">8 of 10", ">cost", ">8 of 10 ", ">$ a GPU-hour",
                    ">from", ">MFU", "meets"}};
};

std::string buy_section(const Node& root) {
  const std::vector<Node> choices = root["choices"].elements();
  std::string limits;
  const auto deadline = figure_if(root, "deadline_s"), budget = figure_if(root, "budget_usd");
  if (deadline) limits += " · deadline " + days_in_words(*deadline / seconds_per_day);
  if (budget) limits += " · budget " + dollar_words(*budget);
  std::string text =
      tag("p",
          fmt::format("{} · {} · {} sequences of {} tokens a step{}", words(root, "software"),
                      tokens_text(figure_at(root, "tokens")),
                      count_words(figure_at(root, "global_batch")),
                      count_words(figure_at(root, "seq_len")), limits),
          "class='sub'");
  if (choices.empty()) {
    text += cards({{"answer", "no cluster runs it", words(root, "reason"), "bad first"}});
  } else {
    text += buy_cards(root, choices);
  }
  ScatterChart chart{.points = {},
                     .x_title = "days",
                     .y_title = "cost",
                     .x_words = days_in_words,
                     .y_words = dollar_words};
  if (deadline) chart.most_x = *deadline / seconds_per_day;
  chart.most_y = budget;
  constexpr std::size_t most_shown = 25;
  ClusterTable first, rest;
  std::vector<std::string> sources;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Node& each = choices[i];
    (i < most_shown ? first : rest).add(each, sources);
    if (const auto cost = each.find("cost_usd")) {
      chart.points.push_back({words(each, "cluster"), range_of(each["days"], ""),
                              range_of(*cost, ""), each.value_or("pareto", false)});
    }
  }
  const bool indications = std::ranges::any_of(choices, [](const Node& each) {
    const auto price = each.find("price");
    return price && !words(*price, "indicative").empty();
  });
  if (!chart.points.empty()) {
    text += tag("h3", "Days against dollars") + scatter_chart(chart);
    text += tag("p",
                fmt::format("Crosses hold 8 of 10 cases, with failures and restarts. Green: no "
                            "other is both faster and cheaper{}.",
                            indications ? ", but for prices that are an indication (~)" : ""),
                "class='note'");
  }
  if (!choices.empty()) text += tag("h3", "Clusters") + first.html();
  if (choices.size() > most_shown) {
    text += fmt::format("<details><summary>{} more</summary>{}</details>\n",
                        choices.size() - most_shown, rest.html());
  }
  if (!sources.empty()) {
    text += tag("h3", "Where the prices are from") + "<ol>\n";
    for (const std::string& each : sources) text += tag("li", each);
    text += "</ol>\n";
  }
  HtmlTable out{{"cluster", "why it cannot run it"}};
  const std::vector<Node> impossible = root["impossible"].elements();
  for (const Node& each : impossible) {
    out.add({markup(words(each, "cluster")), markup(words(each, "reason"))});
  }
  if (!impossible.empty()) {
    text += "<details><summary>Clusters that cannot run it</summary>" + out.html() + "</details>\n";
  }
  return text + list_section("What was assumed", sentences(root, "assumptions"));
}

std::string verdict_css(const std::string& verdict) {
  if (verdict == "possible") return "good";
  return verdict == "impossible" ? "bad" : "warn";
}

std::string check_section(const Node& root) {
  const std::vector<Node> claims = root["claims"].elements();
  std::vector<Card> counts;
  HtmlTable table{{"claim", "about", "verdict", "bound", "formula and source", "true if"}};
  for (const char* verdict : {"impossible", "implausible", "undecided", "possible"}) {
    std::size_t count = 0;
    for (const Node& each : claims) {
      if (words(each, "verdict") != verdict) continue;
      ++count;
      table.add({markup(words(each, "id")), markup(words(each, "quantity")),
                 fmt::format("<span class='{}'>{}</span>", verdict_css(verdict), verdict),
                 markup(words(each, "bound")),
                 markup(fmt::format("{} ({})", words(each, "formula"), words(each, "source"))),
                 markup(words(each, "otherwise"))});
    }
    counts.push_back({verdict, std::to_string(count), "", count > 0 ? verdict_css(verdict) : ""});
  }
  return cards(counts) + tag("h3", "Claims") + table.html();
}

// ---- Several documents.

/// The figures that documents of different kinds have in common; nullopt where one has none.
struct ComparedRow {
  std::string title;
  std::optional<double> gpus{}, step{}, mfu{}, memory{}, step_cost{};
  std::optional<ChartRange> step_range{}, days{}, cost{};
};

ComparedRow compared_row(const Document& document) {
  const Node root = document.root();
  ComparedRow row{.title = title_of_document(document)};
  const auto take_best = [&](const Node& best) {
    row.gpus = figure_if(best, "gpus");
    row.step = figure_if(best, "step_time_s");
    row.mfu = figure_if(best, "mfu");
    row.memory = figure_if(best, "peak_memory_bytes");
    row.step_cost = figure_if(best, "cost_usd_per_step");
  };
  switch (known_kind(document)) {
    case PageKind::simulate:
      take_best(root);
      row.gpus = figure_at(root, "ranks");
      row.step_range = range_of(root["uncertainty"], row.title);
      if (const auto days = figure_if(root, "days")) row.days = ChartRange{"", *days, *days, *days};
      break;
    case PageKind::plan:
      if (const auto plans = root["plans"].elements(); !plans.empty()) take_best(plans.front());
      break;
    case PageKind::buy:
      if (const auto choices = root["choices"].elements(); !choices.empty()) {
        take_best(choices.front());
        row.days = range_of(choices.front()["days"], row.title);
        if (const auto cost = choices.front().find("cost_usd"))
          row.cost = range_of(*cost, row.title);
      }
      break;
    case PageKind::train: {
      const auto phases = root["phases"].elements();
      if (!phases.empty()) take_best(phases.front());
      row.days = range_of(root["days"], row.title);
      if (const auto cost = root.find("cost_usd")) row.cost = range_of(*cost, row.title);
      break;
    }
    case PageKind::sweep:
      if (const auto best = root["best"].elements(); !best.empty()) take_best(best.front());
      break;
    case PageKind::compare_run:
    case PageKind::compare_traces:
      row.step = figure_at(root, "measured_s");
      break;
    default:
      break;
  }
  return row;
}

std::string comparison_section(const std::vector<Document>& documents) {
  HtmlTable table{
      {"result", ">GPUs", ">step", ">8 of 10", ">MFU", ">memory", ">$ a step", ">days", ">cost"}};
  RangeChart steps{.ranges = {}, .words = time_words};
  RangeChart days{.ranges = {}, .words = days_in_words};
  std::map<std::string, int> titles;
  for (const Document& each : documents) ++titles[title_of_document(each)];
  std::size_t number = 0;
  for (const Document& each : documents) {
    ComparedRow row = compared_row(each);
    if (titles[row.title] > 1) {  // two of a kind: their files tell them apart
      row.title += fmt::format(" ({})", file_stem(each));
      if (row.step_range) row.step_range->label = row.title;
    }
    const auto shown = [](const std::optional<double>& value, std::string (*as)(double)) {
      return value ? as(*value) : std::string{};
    };
    const auto span = [](const std::optional<ChartRange>& range, std::string (*as)(double)) {
      if (!range) return std::string{};
      if (range->p10 == range->p90) return as(range->p50);
      return fmt::format("{} ({} to {})", as(range->p50), as(range->p10), as(range->p90));
    };
    table.add({fmt::format("<a href='#r{}'>{}</a>", ++number, markup(row.title)),
               shown(row.gpus, count_words), shown(row.step, time_words),
               row.step_range ? fmt::format("{} to {}", time_words(row.step_range->p10),
                                            time_words(row.step_range->p90))
                              : "",
               shown(row.mfu, share_text), shown(row.memory, size_words),
               shown(row.step_cost, dollar_words), span(row.days, days_in_words),
               span(row.cost, dollar_words)});
    if (row.step_range) steps.ranges.push_back(*row.step_range);
    if (row.days && row.days->p10 < row.days->p90) {
      days.ranges.push_back(*row.days);
      days.ranges.back().label = row.title;
    }
  }
  std::string text = tag("h3", "Compared") + table.html();
  if (steps.ranges.size() > 1) {
    text += tag("h3", "Steps, with what holds 8 of 10 cases") + range_chart(steps);
  }
  if (days.ranges.size() > 1) {
    text += tag("h3", "Days, with what holds 8 of 10 cases") + range_chart(days);
  }
  return text;
}

std::string section_of(const Document& document, bool titled, std::size_t number) {
  const Node root = document.root();
  std::string text = fmt::format("<section id='r{}'>\n", number);
  if (titled) {
    text += tag("h2", title_of_document(document));
    text += tag("p", file_stem(document), "class='sub'");
  }
  switch (known_kind(document)) {
    case PageKind::simulate:
      text += simulate_section(root);
      break;
    case PageKind::what_if:
      text += what_if_section(root);
      break;
    case PageKind::plan:
      text += plan_section(root);
      break;
    case PageKind::buy:
      text += buy_section(root);
      break;
    case PageKind::train:
      text += train_section(root);
      break;
    case PageKind::check:
      text += check_section(root);
      break;
    case PageKind::compare_run:
      text += run_section(root);
      break;
    case PageKind::compare_traces:
      text += traces_section(root);
      break;
    case PageKind::sweep:
      text += sweep_section(root);
      break;
  }
  return text + all_figures(document.json()) + "</section>\n";
}

/// By its first bytes. Errors  a store in Parquet: InputError
bool is_sweep_store(std::string_view beginning, const std::string& name) {
  if (beginning.starts_with("PAR1")) {
    throw InputError{printable(name),
                     "is a Parquet store, which Python alone writes and reads: "
                     "orrery.report(PAGE, orrery.sweep(..., store=PATH)) makes its page"};
  }
  return begins_sweep_store(beginning);
}

}  // namespace

Document result_of(const std::string& text, const std::string& name) {
  if (!is_sweep_store(text, name)) return Document::parse(text, name);
  std::istringstream store{text};
  return sweep_document(store, name);
}

Document load_result(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::string beginning(64, '\0');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(file.gcount()));
  if (!is_sweep_store(beginning, path)) return Document::load(path);
  file.clear();
  file.seekg(0);
  return sweep_document(file, path);
}

std::string page_of(const std::vector<Document>& documents) {
  ensure(!documents.empty(), "a page needs a document");
  const bool several = documents.size() > 1;
  const std::string title = several ? fmt::format("{} results of Orrery", documents.size())
                                    : title_of_document(documents.front());
  std::string text = fmt::format(
      "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
      "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
      "<meta name='color-scheme' content='light dark'>\n<title>{}</title>\n<style>{}{}</style>\n"
      "</head>\n<body>\n<main>\n",
      markup(title), style_sheet, colour_variables());
  text += tag("h1", title);
  if (several) text += comparison_section(documents);
  for (std::size_t i = 0; i < documents.size(); ++i)
    text += section_of(documents[i], several, i + 1);
  text +=
      "<footer>Predicted by Orrery. Ranges hold 8 of 10 cases, by the errors of published runs. "
      "Lengths of bars begin at zero.</footer>\n";
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace orrery::scenarios
