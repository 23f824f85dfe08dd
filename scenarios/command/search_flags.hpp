#pragma once
// The flags that every search has, and how its answer is shown.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
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
  bool timing = false;
  std::optional<std::string> headroom;

  double headroom_share() const { return read_headroom_flag(headroom); }

  /// --model --software --precision --headroom --top --threads --json --timing.
  /// shown  what is listed: "clusters"
  void add_to(CLI::App& command, const std::string& shown);

  /// One JSON document, or what `text_of` makes of the report for this terminal.
  /// began  when the command did
  template <class Report>
  void print(const Report& report, std::chrono::steady_clock::time_point began) const {
    if (json) {
      Json document = to_json(report);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
      if (timing) document["wall_time_s"] = wall.count();
      fmt::print("{}\n", document.dump(2));
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
