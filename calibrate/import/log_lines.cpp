#include "calibrate/import/log_lines.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "sim/input/text.hpp"

namespace orrery::calibrate {

namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t digits(std::string_view text, std::size_t from = 0) {
  std::size_t count = 0;
  while (from + count < text.size() && digit(text[from + count])) ++count;
  return count;
}

/// `[1,0]<stdout>:`
std::size_t mpirun_tag(std::string_view text) {
  if (text.empty() || text[0] != '[') return 0;
  const std::size_t tag = text.find(">:");
  const std::size_t end = text.find("]<std");
  if (tag == std::string_view::npos || end == std::string_view::npos || end > tag) return 0;
  for (const char c : text.substr(1, end - 1)) {
    if (!digit(c) && c != ',') return 0;
  }
  return tag + 2;
}

/// `3: ` or `  12: `
std::size_t srun_label(std::string_view text) {
  const std::size_t blank = std::min(text.find_first_not_of(' '), text.size());
  const std::size_t count = digits(text, blank);
  const std::size_t end = blank + count;
  const bool label = count > 0 && text.substr(end, 2) == ": ";
  return label ? end + 2 : 0;
}

/// `2025-03-04T05:06:07.123Z ` or `2025-03-04 05:06:07 `
std::size_t timestamp(std::string_view text) {
  constexpr std::string_view shape = "dddd-dd-ddTdd:dd:dd";
  if (text.size() < shape.size()) return 0;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const bool fits = shape[i] == 'd'   ? digit(text[i])
                      : shape[i] == 'T' ? text[i] == 'T' || text[i] == ' '
                                        : text[i] == shape[i];
    if (!fits) return 0;
  }
  const std::size_t end = text.find(' ', shape.size());
  return end == std::string_view::npos ? text.size() : end + 1;
}

std::string_view without_prefixes(std::string_view text) {
  for (std::size_t cut = 1; cut > 0;) {
    cut = std::max({mpirun_tag(text), srun_label(text), timestamp(text)});
    text.remove_prefix(cut);
  }
  return text;
}

}  // namespace

std::vector<LogLine> log_lines(std::string_view text) {
  std::vector<LogLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.push_back({number, without_prefixes(line)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> words(std::string_view line) {
  std::vector<std::string_view> found;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return found;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    found.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::string in_lower_case(std::string_view word) {
  std::string lower{word};
  for (char& each : lower) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return lower;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::optional<std::string_view> after(std::string_view text, std::string_view mark) {
  const std::size_t at = text.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + mark.size());
}

std::optional<double> to_number(std::string_view word) {
  double value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

std::optional<std::int64_t> to_integer(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return {};
  return value;
}

std::string place_of(const std::string& file, const LogLine& line) {
  return file + ":line " + std::to_string(line.number);
}

Time microseconds(double value) {
  return from_seconds(value * 1e-6);
}

std::optional<Bandwidth> rate_of(double value, std::string_view unit) {
  if (unit == "MB/s" || unit == "MB/sec" || unit == "MBytes/sec") return Bandwidth{value * 1e6};
  if (unit == "GB/s" || unit == "GB/sec") return Bandwidth{value * 1e9};
  if (unit == "MiB/s" || unit == "MiB/sec") return Bandwidth{value * 0x1p20};
  if (unit == "GiB/s" || unit == "GiB/sec") return Bandwidth{value * 0x1p30};
  if (unit == "Gb/s" || unit == "Gb/sec") return Bandwidth{value * 1e9 / 8};
  return std::nullopt;
}

}  // namespace orrery::calibrate
