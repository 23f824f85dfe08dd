// orrery checkpoint: whether a run can resume from the checkpoints in a folder.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "executor/checkpoint/verify.hpp"
#include "executor/errors.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/ending.hpp"
#include "scenarios/report/result.hpp"
#include "sim/input/text.hpp"
#include "sim/output/or_null.hpp"

namespace orrery::scenarios {

namespace {

struct VerifyFlags {
  std::string folder;
  bool json = false;
};

Json json_of(const executor::VerifiedCheckpoint& found) {
  return {{"folder", found.folder}, {"whole", found.whole()}, {"damage", or_null(found.damage)},
          {"steps", found.steps},   {"model", found.model},   {"ranks", found.ranks},
          {"bytes", found.bytes}};
}

void print(const executor::VerifiedCheckpoint& found) {
  constexpr double mib = 1 << 20;
  if (!found.whole()) {
    fmt::print("{}: damaged: {}\n", printable(found.folder), printable(found.damage));
    return;
  }
  fmt::print("{}: complete: {} after {} steps, {:.1f} MiB of {} ranks\n", printable(found.folder),
             printable(found.model), found.steps, static_cast<double>(found.bytes) / mib,
             found.ranks);
}

int verify(const VerifyFlags& flags) {
  const auto all = executor::verify_checkpoints(flags.folder);
  if (flags.json) {
    Json checkpoints = Json::array();
    for (const auto& each : all) checkpoints.push_back(json_of(each));
    print_document({{"checkpoints", std::move(checkpoints)}});
  } else {
    for (const auto& each : all) print(each);
  }
  const bool whole = std::ranges::all_of(all, [](const auto& each) { return each.whole(); });
  return whole ? exit_done : exit_answer_is_no;
}

}  // namespace

void add_checkpoint(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("checkpoint", "Verify the checkpoints of orrery execute");
  command.require_subcommand(1);
  CLI::App& verifying = *command.add_subcommand(
      "verify", "Read every byte of a folder's checkpoints: sizes, checksums, completeness");
  const auto flags = std::make_shared<VerifyFlags>();
  verifying
      .add_option("folder", flags->folder, "Folder given to --checkpoint, or one checkpoint in it")
      ->required();
  verifying.add_flag("--json", flags->json, "One JSON document instead of the list");
  verifying.callback([flags, &exit_code] {
    try {
      exit_code = verify(*flags);
    } catch (const executor::RunFailure& failure) {  // a folder that cannot be read
      exit_code =
          report_failure(failure_of(static_cast<int>(failure.code()), failure.what()), flags->json);
    }
  });
}

}  // namespace orrery::scenarios
