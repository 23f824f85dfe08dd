#pragma once
// How a report looks: colours where they are wanted, tables that line up, bars in eighths of a
// character.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::scenarios {

enum class Tone : std::uint8_t { plain, bold, faint, good, loss, gain, bad };

/// `text` in a tone, or as it is without colour.
std::string toned(std::string_view text, Tone tone, bool colour);

/// Columns that a text takes: its code points.
std::size_t shown_columns(std::string_view text);

/// A bar from `begin` to `end`, shares of a line of `width` columns, with blanks before it. Its
/// start is rounded to a column and its length to an eighth of one; a length above 0 shows at least
/// an eighth.
std::string bar(double begin, double end, std::size_t width);

/// `text` broken at blanks into lines of at most `width` columns.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

/// Rows under a head, each column as wide as its widest cell.
class TextTable {
 public:
  enum class Align : std::uint8_t { left, right };
  /// A column aligns right; to the left if its title is written with a '<' before it, as in "<gpu".
  struct Column {
    Column(std::string name, Align side = Align::right) : title{std::move(name)}, align{side} {}
    Column(const char* marked)
        : title{*marked == '<' ? marked + 1 : marked},
          align{*marked == '<' ? Align::left : Align::right} {}

    std::string title;
    Align align;
  };
  explicit TextTable(std::vector<Column> columns) : columns_{std::move(columns)} {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }
  /// Each line indented by two blanks; the head is faint.
  std::string text(bool colour) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace orrery::scenarios
