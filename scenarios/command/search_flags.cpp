#include "scenarios/command/search_flags.hpp"

#include "scenarios/command/commands.hpp"

namespace orrery::scenarios {

void SearchFlags::add_to(CLI::App& command, const std::string& shown) {
  command.add_option("--model", model, "Model: a config.json, or a name")->required();
  command.add_option("--software", software, "Software profile: a path, or a name");
  command.add_option("--precision", precision, "fp32, tf32, fp16, bf16 (default) or fp8");
  command.add_option("--headroom", headroom, headroom_help);
  command.add_option("--top", top, "How many " + shown + " to show (10)")
      ->check(CLI::Range(std::size_t{1}, std::size_t{1000}));
  command.add_option("--threads", threads, "Threads (all of the machine)")
      ->check(CLI::Range(1U, most_threads));
  command.add_flag("--json", json, "One JSON document instead of the tables");
  command.add_flag("--timing", timing, "In the JSON, how long the answer took");
}

}  // namespace orrery::scenarios
