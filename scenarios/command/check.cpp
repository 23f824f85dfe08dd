// orrery check CLAIMS.json: what physics and dated prices allow.

#include <fmt/format.h>

#include <memory>

#include "scenarios/claims/claims.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/terminal.hpp"

namespace orrery::scenarios {

namespace {

struct CheckFlags {
  std::string file;
  bool json = false;
};

int check(const CheckFlags& flags) {
  const std::vector<JudgedClaim> claims = judge_claims(Document::load(flags.file));
  const Terminal shown = terminal();
  if (flags.json)
    print_document(to_json(claims));
  else
    fmt::print("{}", text_of(claims, shown.width, shown.colour));
  for (const JudgedClaim& each : claims) {
    if (each.judgement.verdict == Verdict::impossible) return exit_answer_is_no;
  }
  return exit_done;
}

}  // namespace

void add_check(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "check", "Judge claims against bounds of physics and dated prices");
  const auto flags = std::make_shared<CheckFlags>();
  command.add_option("claims", flags->file, "Claims, JSON")->required();
  command.add_flag("--json", flags->json, "One JSON document instead of the list");
  command.footer(
      "A claim: {\"id\": \"S1\", \"quantity\": \"link bandwidth\", \"value\": \"90 GB/s\",\n"
      "  \"subject\": {\"link\": \"100 Gb/s\"}}. Exit code 1: one of them is impossible.\n"
      "Quantities:\n" +
      claim_vocabulary());
  command.callback([flags, &exit_code] { exit_code = check(*flags); });
}

}  // namespace orrery::scenarios
