#include "scenarios/page/run_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "scenarios/drawing/markup.hpp"
#include "scenarios/page/html.hpp"
#include "scenarios/runback/run_class.hpp"
#include "scenarios/runback/run_comparison.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_run_rows = 15;  // more are among the figures of the document

/// A class of a measured step, and whose colour of page_colours it has.
struct RunClassColour {
  RunClass which;
  std::string_view colour;
};
constexpr RunClassColour run_class_colours[] = {
    {RunClass::gemm, "gemm"},
    {RunClass::attention, "attention"},
    {RunClass::memory_bound, "memory_bound"},
    {RunClass::optimizer, "optimizer"},
    {RunClass::copies, "cp"},
    {RunClass::communication, "tp"},
    {RunClass::pipeline, "pp"},
    {RunClass::host, "host"},
    {RunClass::data_loading, "data"},
    {RunClass::other, "other"},
};
static_assert(std::size(run_class_colours) == run_class_count);

std::optional<RunClass> run_class_of(const std::string& word) {
  for (const auto& each : run_class_words) {
    if (each.text == word) return each.value;
  }
  return std::nullopt;
}

std::string class_title(const std::string& word) {
  const auto which = run_class_of(word);
  return which ? std::string{title_of(*which)} : label_of(word);
}

std::string class_colour(const std::string& word) {
  const auto which = run_class_of(word);
  for (const RunClassColour& each : run_class_colours) {
    if (which == each.which) return colour_of(each.colour);
  }
  return colour_of(word);
}

std::string signed_time(double time) {
  return (time < 0 ? "\u2212" : "+") + time_words(std::abs(time));
}

/// Predicted and measured step by class, and their differences.
std::string classes_part(const Node& root, bool of_run) {
  PartedChart both{
      .classes = {}, .bars = {{"predicted", {}}, {"measured", {}}}, .words = time_words};
  std::vector<ChartBar> differences;
  const double step = std::max(figure_at(root, "predicted_s"), figure_at(root, "measured_s"));
  for (const Node& each : root["classes"].elements()) {
    const std::string word = words(each, "class");
    const double predicted = figure_at(each, "predicted_s"),
                 measured = figure_at(each, "measured_s");
    const std::string title = of_run ? class_title(word) : label_of(word);
    const std::string colour = of_run ? class_colour(word) : colour_of(word);
    both.classes.push_back({title, 0, colour});
    both.bars[0].parts.push_back(predicted);
    both.bars[1].parts.push_back(measured);
    if (std::abs(measured - predicted) >= 5e-4 * step) {
      differences.push_back({title, measured - predicted, colour});
    }
  }
  if (both.classes.empty()) return {};
  std::ranges::stable_sort(differences, [](const ChartBar& a, const ChartBar& b) {
    return std::abs(a.value) > std::abs(b.value);
  });
  std::string text = tag("h3", of_run ? "Where the step goes" : "Time of operations by class") +
                     parted_chart(both);
  if (!differences.empty()) {
    text += tag("h3", "Measured less predicted") + difference_chart(differences, time_words);
  }
  return text;
}

std::string changes_part(const Node& root) {
  const std::vector<Node> causes = root["causes"].elements();
  std::string text = tag("h3", "The few changes that would explain the difference");
  if (agrees(figure_at(root, "predicted_s"), figure_at(root, "measured_s"))) {
    return text + tag("p", words_of_agreement, "class='note'");
  }
  if (causes.empty()) {
    return text +
           tag("p", "None: no change is likelier than the prediction's own error.", "class='note'");
  }
  HtmlTable table{{"change", ">effect", ">of the difference", ">prior", "as flags"}};
  const auto share_of = [](const std::optional<double>& share) {
    return share ? share_text(*share) : std::string{};
  };
  for (const Node& each : causes) {
    const auto flags = each.find("flags");
    table.add({fmt::format("{}<div class='note'>{}</div>", markup(words(each, "cause")),
                           markup(words(each, "basis"))),
               signed_time(figure_at(each, "effect_s")), share_of(figure_if(each, "share")),
               fmt::format("{:.2g}", figure_at(each, "prior")),
               flags ? code_cell(flags->as<std::string>()) : ""});
  }
  const double left = figure_at(root, "unexplained_s"), all = figure_at(root, "difference_s");
  table.add({"not explained", signed_time(left), all != 0 ? share_text(left / all) : "", "", ""});
  return text + table.html();
}

std::string alternatives_part(const Node& root) {
  const std::string title = tag("h3", "What would explain such a step");
  const std::vector<Node> explanations = root["explanations"].elements();
  if (explanations.empty()) {
    const bool inside = root["inside_range"].as<bool>();
    return title + tag("p", words_without_explanation(inside), "class='note'");
  }
  HtmlTable table{{"one of these would do", ">step with it", ">likelihood", ">prior", "as flags"}};
  for (const Node& each : explanations) {
    const auto flags = each.find("flags");
    table.add({fmt::format("{}<div class='note'>{}</div>", markup(words(each, "cause")),
                           markup(words(each, "basis"))),
               time_words(figure_at(each, "step_time_s")), share_text(figure_at(each, "weight")),
               fmt::format("{:.2g}", figure_at(each, "prior")),
               flags ? code_cell(flags->as<std::string>()) : ""});
  }
  return title + table.html();
}

std::string tally_count(const Node& row, std::string_view key) {
  const auto tally = row.find(key);
  return tally ? fmt::format("{:.4g}", figure_at(*tally, "count")) : "";
}

std::string tally_time(const Node& row, std::string_view key) {
  const auto tally = row.find(key);
  return tally ? time_words(figure_at(*tally, "time_s")) : "";
}

/// The first rows of a list that a function writes into a table.
template <class Add>
std::string run_table(std::string_view title, HtmlTable table, const Node& list, Add add) {
  const std::vector<Node> rows = list.elements();
  if (rows.empty()) return {};
  for (const Node& each : std::span{rows}.first(std::min(rows.size(), most_run_rows))) {
    add(table, each);
  }
  std::string text = tag("h3", title) + table.html();
  if (rows.size() <= most_run_rows) return text;
  return text + tag("p", fmt::format("and {} more", rows.size() - most_run_rows), "class='note'");
}

std::string collectives_part(const Node& root) {
  return run_table(
      "Collectives and transfers of a step",
      HtmlTable{{"collective", "group", ">ranks", ">size", ">calls", ">measured",
                 ">without waiting", ">predicted calls", ">predicted"}},
      root["collectives"], [](HtmlTable& table, const Node& each) {
        const auto bytes = figure_if(each, "bytes"), ranks = figure_if(each, "ranks");
        const auto transfer = figure_if(each, "transfer_s");
        const std::string group = words(each, "group"), own = words(each, "communicator");
        table.add(
            {markup(words(each, "collective")),
             markup(group == own ? own : group + (group.empty() || own.empty() ? "" : " = ") + own),
             ranks ? count_words(*ranks) : "?", bytes ? size_words(*bytes) : "?",
             tally_count(each, "measured"), tally_time(each, "measured"),
             transfer ? time_words(*transfer) : "", tally_count(each, "predicted"),
             tally_time(each, "predicted")});
      });
}

std::string shapes_part(const Node& root) {
  return run_table(
      "GEMMs of a step, by their three sizes",
      HtmlTable{{"sizes", ">calls", ">measured", ">predicted calls", ">predicted"}}, root["shapes"],
      [](HtmlTable& table, const Node& each) {
        std::string sizes;
        for (const Node& size : each["sizes"].elements()) {
          sizes += (sizes.empty() ? "" : " x ") + count_words(size.as<double>());
        }
        const double batch = figure_at(each, "batch");
        if (batch > 1) sizes = count_words(batch) + " of " + sizes;
        table.add({markup(sizes), tally_count(each, "measured"), tally_time(each, "measured"),
                   tally_count(each, "predicted"), tally_time(each, "predicted")});
      });
}

std::string kernels_part(const Node& root) {
  return run_table(
      "Largest measured kernels of a step", HtmlTable{{"kernel", "class", ">calls", ">time"}},
      root["kernels"], [](HtmlTable& table, const Node& each) {
        table.add({code_cell(words(each, "name")), markup(class_title(words(each, "class"))),
                   fmt::format("{:.4g}", figure_at(each, "count")),
                   time_words(figure_at(each, "time_s"))});
      });
}

std::string steps_words(const Node& steps) {
  const double count = figure_at(steps, "count");
  if (count == 1) return "1 step";
  return fmt::format("{} steps, {} to {} from the 10th to the 90th percentile", count_words(count),
                     time_words(figure_at(steps, "p10_s")), time_words(figure_at(steps, "p90_s")));
}

/// The card of the measured step against the predicted one.
Card difference_card(double predicted, double measured) {
  const double off = predicted > 0 ? measured / predicted - 1 : 0;
  const std::string css = std::abs(off) < 0.1 ? "good" : "warn";
  constexpr double shown = 5e-4;  // less is 0.0 %
  if (std::abs(off) < shown) return {"the run takes", "as long", "as predicted", css};
  const char* which = off < 0 ? "less" : "more";
  return {"the run takes", fmt::format("{:.1f} % {}", std::abs(100 * off), which),
          fmt::format("{} {} than predicted", time_words(std::abs(measured - predicted)), which),
          css};
}

std::string run_cards(const Node& root) {
  const double predicted = figure_at(root, "predicted_s"), measured = figure_at(root, "measured_s");
  const Node steps = root["steps"];
  const double slow = figure_at(steps, "slow_steps");
  return cards(
      {{"measured step", time_words(measured), steps_words(steps), "first"},
       {"predicted step", time_words(predicted), "", "first"},
       difference_card(predicted, measured),
       {"throughput",
        fmt::format("{} tokens/s", count_words(std::round(figure_at(root, "tokens_per_s")))),
        slow > 0 ? fmt::format("{} of the steps over 1.5 times the median", count_words(slow))
                 : ""}});
}

}  // namespace

std::string run_section(const Node& root) {
  std::string sub = words(root, "source");
  if (const auto ranks = root["ranks"].elements(); !ranks.empty()) {
    sub += fmt::format(" · {} rank{} traced", ranks.size(), ranks.size() == 1 ? "" : "s");
  }
  std::string text = tag("p", sub, "class='sub'") + run_cards(root) + classes_part(root, true);
  const auto alternatives = root.find("alternatives");  // where only steps are known
  text += alternatives ? alternatives_part(*alternatives) : changes_part(root);
  text += collectives_part(root) + shapes_part(root) + kernels_part(root);
  return text + list_section("Notes", sentences(root, "notes"));
}

std::string traces_section(const Node& root) {
  const double predicted = figure_at(root, "predicted_s"), measured = figure_at(root, "measured_s");
  const auto ratio = figure_if(root, "ratio");
  std::string text =
      cards({{"measured step", time_words(measured), "", "first"},
             {"predicted step", time_words(predicted), "", "first"},
             {"measured over predicted", ratio ? fmt::format("{:.2f}", *ratio) : "?",
              fmt::format("{} ranks", count_words(figure_at(root, "ranks")))},
             {"waiting for other ranks", time_words(figure_at(root, "waiting_s")), ""}});
  text += classes_part(root, false);
  return text +
         run_table("Operations that differ most",
                   HtmlTable{{"block", "operation", "class", ">calls", ">predicted", ">measured",
                              ">ratio"}},
                   root["largest_differences"], [](HtmlTable& table, const Node& each) {
                     const auto times = figure_if(each, "ratio");
                     table.add({markup(words(each, "block")), markup(words(each, "operation")),
                                markup(label_of(words(each, "class"))),
                                count_words(figure_at(each, "count")),
                                time_words(figure_at(each, "predicted_s")),
                                time_words(figure_at(each, "measured_s")),
                                times ? fmt::format("{:.2f}", *times) : ""});
                   });
}

}  // namespace orrery::scenarios
