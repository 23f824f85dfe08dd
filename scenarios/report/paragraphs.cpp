#include <algorithm>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

std::size_t columns_after(std::size_t indent, const ReportOptions& options) {
  constexpr int narrowest = 40;
  return static_cast<std::size_t>(std::max(options.width - static_cast<int>(indent), narrowest));
}

std::string paragraph(std::string_view text, std::size_t indent, const ReportOptions& options) {
  std::string lines;
  for (const std::string& each : wrapped(text, columns_after(indent, options))) {
    lines += std::string(indent, ' ') + each + "\n";
  }
  return lines;
}

std::string legend(std::string_view text, const ReportOptions& options) {
  std::string lines;
  for (const std::string& each : wrapped(text, columns_after(2, options))) {
    lines += "  " + toned(each, Tone::faint, options.colour) + "\n";
  }
  return lines;
}

std::string assumed_section(const std::vector<std::string>& assumptions,
                            const ReportOptions& options) {
  if (assumptions.empty()) return {};
  std::string text = heading("Assumed", options);
  for (const std::string& each : assumptions) {
    std::string item = paragraph(each, 4, options);
    if (item.size() > 4) item[2] = '-';
    text += item;
  }
  return text;
}

}  // namespace orrery::scenarios
