#include "scenarios/report/style.hpp"

#include <algorithm>
#include <cmath>

#include "sim/errors.hpp"

namespace orrery::scenarios {

std::string toned(std::string_view text, Tone tone, bool colour) {
  // SGR codes of ECMA-48: bold, faint, and the eight colours that every terminal has.
  constexpr std::string_view codes[] = {"", "1", "2", "32", "33", "36", "1;31"};
  const std::string_view code = codes[static_cast<int>(tone)];
  if (!colour || code.empty()) return std::string{text};
  return "\x1b[" + std::string{code} + "m" + std::string{text} + "\x1b[0m";
}

std::size_t shown_columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;  // not a UTF-8 continuation byte
  }));
}

std::string bar(double begin, double end, std::size_t width) {
  constexpr std::string_view eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  const double columns = static_cast<double>(width);
  begin = std::clamp(begin, 0.0, 1.0);
  end = std::clamp(end, begin, 1.0);
  const double first = std::round(begin * columns);
  const long length = std::max<long>(end > begin ? 1 : 0, std::lround((end - begin) * columns * 8));
  std::string text(static_cast<std::size_t>(std::min(first, columns - 1)), ' ');
  for (long full = 0; full < length / 8; ++full) text += "█";
  return text + std::string{eighths[length % 8]};
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines{""};
  while (!text.empty()) {
    const std::size_t blank = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, blank);
    text.remove_prefix(std::min(blank + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (shown_columns(line) + 1 + shown_columns(word) <= width) {
      line += ' ';
      line += word;
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

namespace {

std::string padded(const std::string& cell, std::size_t width, TextTable::Align align) {
  const std::string blanks(width - std::min(width, shown_columns(cell)), ' ');
  return align == TextTable::Align::left ? cell + blanks : blanks + cell;
}

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

}  // namespace

std::string TextTable::text(bool colour) const {
  std::vector<std::size_t> widths;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = shown_columns(columns_[c].title);
    for (const auto& row : rows_) {
      ensure(row.size() == columns_.size(), "a table's row has a cell per column");
      width = std::max(width, shown_columns(row[c]));
    }
    widths.push_back(width);
  }
  const auto line_of = [&](auto cell_of) {
    std::string line;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      line += "  " + padded(cell_of(c), widths[c], columns_[c].align);
    }
    trim_right(line);
    return line;
  };
  std::string text =
      toned(line_of([&](std::size_t c) { return columns_[c].title; }), Tone::faint, colour) + "\n";
  for (const auto& row : rows_) {
    text += line_of([&](std::size_t c) { return row[c]; }) + "\n";
  }
  return text;
}

}  // namespace orrery::scenarios
