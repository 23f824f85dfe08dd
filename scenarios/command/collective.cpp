// orrery collective: what nccl-tests would print on a cluster, and why.

#include <fmt/format.h>

#include <memory>

#include "calibrate/import/import.hpp"
#include "scenarios/collective/measured_points.hpp"
#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/command/terminal/terminal.hpp"

namespace orrery::scenarios {

namespace {

struct CollectiveFlags {
  CollectiveRequest request;
  std::vector<std::string> against;
  bool json = false, timing = false;
};

int collective(CollectiveFlags& flags) {
  CollectiveRequest& request = flags.request;
  for (const std::string& log : flags.against) {
    for (MeasuredPoint& point : measured_points(calibrate::import_log(log).samples, log)) {
      request.against.push_back(std::move(point));
    }
  }
  const CollectiveReport found = answer(request);
  if (flags.json)
    print_document(to_json(found, flags.timing));
  else
    fmt::print("{}", text_of(found, flags.timing, terminal().colour));
  return exit_done;
}

}  // namespace

void add_collective(CLI::App& application, int& exit_code) {
  const auto flags = std::make_shared<CollectiveFlags>();
  CollectiveRequest& request = flags->request;
  CLI::App& command = *application.add_subcommand(
      "collective", "Predict what nccl-tests would print, with reasons");
  command.add_option("--cluster", request.cluster, "Cluster: a path, a name, or 'NODE x COUNT'")
      ->required();
  command.add_option("--op", request.operation,
                     fmt::format("Collective: {} (all_reduce)", listed(models::collective_words)));
  repeated(
      *command.add_option("--sizes", request.sizes,
                          "Sizes as nccl-tests counts them: 1MiB, 1MiB,4MiB or FROM:TO:FACTOR"));
  command.add_option("--ranks", request.ranks, "Number of GPUs, which fill nodes in order (all)");
  command.add_option("--algo", request.algorithm,
                     fmt::format("Algorithm: {}", listed(models::builtin_algorithms().names())));
  command.add_option("--proto", request.protocol,
                     fmt::format("NCCL's protocol: {}", listed(models::protocol_words)));
  command.add_option("--channels", request.channels, "Most channels, as NCCL_MAX_NCHANNELS")
      ->check(CLI::Range(1, 64));
  command.add_option("--choice", request.choice,
                     "Choice of algorithms: fastest (by the cost models, default) or nccl (by "
                     "NCCL's tuner; default "
                     "with --env)");
  repeated(*command.add_option(
      "--env", request.environment,
      "Variable that restricts NCCL's tuner: NCCL_ALGO=Ring,Tree, NCCL_PROTO=^LL128, "
      "NCCL_MAX_NCHANNELS=8 (or NCCL_MAX_CTAS=8); repeat the flag for more"));
  command.add_option(
      "--counts", request.counts,
      "For all_to_all_v: file of byte counts, a line per sender with a count per receiver");
  command.add_option(
      "--network", request.network,
      "static (default), events (flows share links) or steps (every message is a flow)");
  repeated(*command.add_option("--against", flags->against,
                               "Measured log to compare with, as nccl-tests prints it; repeat the "
                               "flag for more"));
  command.add_flag("--json", flags->json, "One JSON document on stdout");
  command.add_flag("--timing", flags->timing, "Add the time that it took");
  command.callback([flags, &exit_code] { exit_code = collective(*flags); });
}

}  // namespace orrery::scenarios
