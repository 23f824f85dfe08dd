#include "scenarios/page/html.hpp"

#include <fmt/format.h>

#include <cmath>

#include "scenarios/drawing/markup.hpp"

namespace orrery::scenarios {

double figure_at(const Node& node, std::string_view key) {
  return node[key].as<double>();
}

std::optional<double> figure_if(const Node& node, std::string_view key) {
  const auto member = node.find(key);
  return member ? std::optional{member->as<double>()} : std::nullopt;
}

std::string words(const Node& node, std::string_view key, std::string otherwise) {
  return node.value_or<std::string>(key, std::move(otherwise));
}

std::vector<std::string> sentences(const Node& node, std::string_view key) {
  std::vector<std::string> list;
  if (const auto member = node.find(key)) {
    for (const Node& each : member->elements()) list.push_back(each.as<std::string>());
  }
  return list;
}

ChartRange range_of(const Node& node, std::string label) {
  return {std::move(label), figure_at(node, "p10"), figure_at(node, "p50"), figure_at(node, "p90")};
}

std::string tokens_text(double tokens) {
  return tokens >= 1e12  ? fmt::format("{:.4g}T tokens", tokens / 1e12)
         : tokens >= 1e9 ? fmt::format("{:.4g}B tokens", tokens / 1e9)
                         : count_words(tokens) + " tokens";
}

std::string share_text(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string hours_text(double hours) {
  return hours >= 1e6 ? fmt::format("{:.2f}M", hours / 1e6) : count_words(std::round(hours));
}

std::string tag(std::string_view name, std::string_view text, std::string_view attributes) {
  return fmt::format("<{0}{1}{2}>{3}</{0}>\n", name, attributes.empty() ? "" : " ", attributes,
                     markup(text));
}

std::string cards(const std::vector<Card>& all) {
  std::string text = "<div class='cards'>\n";
  for (const Card& each : all) {
    text += fmt::format(
        "<div class='card {}'><span class='k'>{}</span><b>{}</b><span class='r'>{}</span></div>\n",
        each.css, markup(each.label), markup(each.value), markup(each.rest));
  }
  return text + "</div>\n";
}

std::string HtmlTable::html() const {
  std::string text = "<div class='wide'><table><thead><tr>";
  for (const std::string& each : titles_) {
    const bool right = each.starts_with('>');
    text += fmt::format("<th{}>{}</th>", right ? " class='n'" : "",
                        markup(std::string_view{each}.substr(right ? 1 : 0)));
  }
  text += "</tr></thead><tbody>\n";
  for (const auto& row : rows_) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += fmt::format("<td{}>{}</td>", titles_[i].starts_with('>') ? " class='n'" : "", row[i]);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string bar_cell(const std::string& shown, double value, double most, std::string_view colour) {
  return fmt::format("<div class='bar'>{}<i style='width:{:.1f}%{}'></i></div>", markup(shown),
                     most > 0 ? 100 * value / most : 0,
                     colour.empty() ? "" : fmt::format(";background:{}", colour));
}

std::string code_cell(std::string_view text) {
  return fmt::format("<code>{}</code>", markup(text));
}

std::string list_section(std::string_view title, const std::vector<std::string>& all) {
  if (all.empty()) return {};
  std::string text = tag("h3", title) + "<ul>\n";
  for (const std::string& each : all) text += tag("li", each);
  return text + "</ul>\n";
}

namespace {

constexpr std::size_t most_elements = 40, most_figures = 1500;

/// The numbers and texts of a document as rows, up to most_elements of a list and most_figures in
/// all, and how many were left out.
class FigureRows {
 public:
  void add(const Json& value, const std::string& pointer) {
    if (value.is_structured() && !value.empty()) {
      std::size_t element = 0;
      for (const auto& [key, member] : value.items()) {
        if (pointer.empty() && key == "timeline") continue;
        if (value.is_array() && ++element > most_elements) {
          left_out_ += figures_of(member);
        } else {
          add(member, pointer + "/" + key);
        }
      }
      return;
    }
    if (++rows_ > most_figures) {
      ++left_out_;
      return;
    }
    table_.add(
        {code_cell(pointer),
         markup(value.is_string() ? value.get<std::string>()
                                  : value.dump(-1, ' ', false, Json::error_handler_t::replace))});
  }

  std::string html() const {
    const std::string summary =
        left_out_ == 0 ? "All figures of the document"
                       : fmt::format("Figures of the document, without {} that its JSON has more",
                                     count_words(static_cast<double>(left_out_)));
    return "<details><summary>" + summary + "</summary><div class='raw'>" + table_.html() +
           "</div></details>\n";
  }

 private:
  static std::size_t figures_of(const Json& value) {
    if (!value.is_structured() || value.empty()) return 1;
    std::size_t count = 0;
    for (const Json& member : value) count += figures_of(member);
    return count;
  }

  HtmlTable table_{{"pointer", "value"}};
  std::size_t rows_ = 0, left_out_ = 0;
};

}  // namespace

std::string all_figures(const Json& json) {
  FigureRows rows;
  rows.add(json, "");
  return rows.html();
}

std::pair<std::string, std::string> fit_answer(const std::string& fit) {
  if (fit == "yes") return {"fits", "good"};
  if (fit == "tight") return {"fits tightly", "good"};
  if (fit == "doubtful") return {"may not fit", "warn"};
  return {"does not fit", "bad"};
}

}  // namespace orrery::scenarios
