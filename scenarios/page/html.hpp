#pragma once
// What the sections of a report page share: members of documents, and pieces of HTML. Texts are
// escaped; cells of a table are HTML already.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/page/charts.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

// Members of a document. Errors  a member that is missing or of another kind: InputError

double figure_at(const Node& node, std::string_view key);
std::optional<double> figure_if(const Node& node, std::string_view key);
std::string words(const Node& node, std::string_view key, std::string otherwise = "");
/// Empty where the member is missing.
std::vector<std::string> sentences(const Node& node, std::string_view key);
/// Of `{p10, p50, p90}`.
ChartRange range_of(const Node& node, std::string label);
/// The answer to whether it fits, in words, and its class in the style sheet.
std::pair<std::string, std::string> fit_answer(const std::string& fit);

// Figures in words.

std::string tokens_text(double tokens);
/// "35.4 %".
std::string share_text(double share);
std::string hours_text(double hours);

// Pieces of HTML.

/// attributes  as HTML writes them, not escaped: "class='note'"
std::string tag(std::string_view name, std::string_view text, std::string_view attributes = "");

struct Card {
  std::string label, value, rest;
  std::string css = {};
};
std::string cards(const std::vector<Card>& all);

/// Rows of cells that are HTML already; a column whose title begins with '>' aligns right.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> titles) : titles_{std::move(titles)} {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  std::string html() const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

/// A figure with a bar from zero below it.
std::string bar_cell(const std::string& shown, double value, double most,
                     std::string_view colour = "");
std::string code_cell(std::string_view text);
/// Nothing where the list is empty.
std::string list_section(std::string_view title, const std::vector<std::string>& all);
/// The numbers and texts of a document with their pointers, folded away: the first 40 elements of a
/// list, 1,500 rows in all, and how many are left out. A timeline has a picture instead.
std::string all_figures(const Json& json);

}  // namespace orrery::scenarios
