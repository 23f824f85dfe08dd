#pragma once
// Flags shared by the search commands (`plan`, `buy`), and the printing of their reports.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"
#include "scenarios/report/result.hpp"
#include "scenarios/search/query.hpp"

namespace orrery::scenarios {

struct SearchFlags {
  bool json = false;
  bool timing = false;
  std::optional<std::string> headroom;

  /// --model --software --precision --headroom --top --threads --json --timing.
  /// shown  what is listed: "clusters"
  template <class Request>
  void add_to(CLI::App& command, Request& request, const std::string& shown) {
    command.add_option("--model", request.model, "Model: a config.json, or a name")->required();
    command.add_option("--software", request.software, "Software profile: a path, or a name");
    command.add_option("--precision", request.precision, "fp32, tf32, fp16, bf16 (default) or fp8");
    command.add_option("--headroom", headroom, headroom_help);
    command.add_option("--top", request.top, "How many " + shown + " to show (10)")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
    command.add_option("--threads", request.threads, "Threads (all of the machine)")
        ->check(CLI::Range(1U, most_threads));
    command.add_flag("--json", json, "One JSON document instead of the tables");
    command.add_flag("--timing", timing, "In the JSON, how long the answer took");
  }

  /// Parses the flags that are taken as text. Errors: InputError
  template <class Request>
  void complete(Request& request) const {
    if (headroom) request.headroom = read_headroom_flag(headroom);
  }

  /// Prints the report as one JSON document, or as text that fits the terminal.
  /// began  when the command started
  /// more   further members of the document
  template <class Report>
  void print(const Report& report, std::chrono::steady_clock::time_point began,
             const Json& more = Json::object()) const {
    if (json) {
      Json document = to_json(report);
      document.update(more);
      const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
      if (timing) document["wall_time_s"] = wall.count();
      print_document(document);
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
