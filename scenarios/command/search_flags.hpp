#pragma once
// The flags that every search has, and how its answer is shown.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "scenarios/command/terminal.hpp"
#include "scenarios/result.hpp"
#include "scenarios/search/query.hpp"

namespace orrery::scenarios {

struct SearchFlags {
  std::string model;
  std::optional<std::string> software;
  std::string precision = "bf16";
  std::size_t top = 10;
  unsigned threads = 0;
  bool json = false;
  std::optional<std::string> headroom;

  double headroom_share() const { return read_headroom_flag(headroom); }

  /// --model --software --precision --headroom --top --threads --json.
  /// shown  what is listed: "clusters"
  void add_to(CLI::App& command, const std::string& shown);

  /// One JSON document, or what `text_of` makes of the report for this terminal.
  template <class Report>
  void print(const Report& report) const {
    if (json) {
      fmt::print("{}\n", to_json(report).dump(2));
      return;
    }
    const Terminal screen = terminal();
    ReportOptions options;
    options.width = screen.width;
    options.colour = screen.colour;
    fmt::print("{}", text_of(report, options));
  }
};

}  // namespace orrery::scenarios
