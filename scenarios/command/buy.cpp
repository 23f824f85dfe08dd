// orrery buy: on which clusters a model trains, for how many days and dollars.

#include <chrono>
#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/search_flags.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/question/purchase_request.hpp"
#include "scenarios/scenario/limits.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct BuyFlags : SearchFlags {
  PurchaseRequest request;
  std::optional<std::string> picture, confidence;
};

int buy(BuyFlags& flags) {
  const auto begin = std::chrono::steady_clock::now();
  flags.complete(flags.request);
  if (flags.confidence) flags.request.confidence = read_confidence_flag(*flags.confidence);
  const InterruptGuard guard;
  const PurchaseSurvey found = survey(flags.request, watched_progress("clusters"));
  if (flags.picture) write_durably(*flags.picture, picture_of(found.report()));
  flags.print(found.report(), begin);
  if (found.answer.stopped) return InterruptGuard::exit_code();
  return found.answer.meeting() > 0 ? exit_done : exit_answer_is_no;
}

}  // namespace

void add_buy(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("buy", "Rank clusters to rent or own by days and dollars");
  const auto flags = std::make_shared<BuyFlags>();
  PurchaseRequest& request = flags->request;
  constexpr std::int64_t most = std::int64_t{1} << 30;
  flags->add_to(command, request, "clusters");
  command.add_option("--tokens", request.tokens, "Tokens to train on, such as 300B")->required();
  command.add_option("--deadline", request.deadline, "Longest time, such as 30d, 8w or 30 (days)");
  command.add_option("--budget", request.budget, "Largest cost, such as 5M or $5,000,000");
  command.add_option("--confidence", flags->confidence,
                     "Probability with which deadline and budget are kept, with failures and "
                     "restarts, such as 0.9 or 90% (0.8)");
  command.add_option("--term", request.term,
                     "How it is paid for: on-demand (default), 1y, 3y (reserved), spot, own, or a "
                     "mix such as 3y=0.6,spot=0.4");
  command.add_option("--picture", flags->picture,
                     "File for a picture of days against dollars (SVG)");
  command
      .add_option(
          "--quote", request.quotes,
          "A price of a GPU-hour that you were quoted: 2.10/h, or p5=2.10/h of one node type")
      ->delimiter(',');
  command.add_option("--gpus", request.gpus,
                     "Sizes to look at: 512, or 96,768, or 64:1024:x2 (powers of two of nodes)");
  command.add_option("--global-batch", request.global_batch, "Sequences of one step")
      ->check(CLI::Range(std::int64_t{1}, most));
  command
      .add_option("--seq-len", request.seq_len,
                  "Tokens of one sequence (the model's longest up to 8192)")
      ->check(CLI::Range(std::int64_t{1}, most));
  command.add_option(
      "--data", request.data,
      "What steps read: member data of a scenario as JSON, such as "
      "'{\"format\": \"jpeg-q90\", \"decode\": {\"cores\": 16}}', or a file with it");
  command.add_option("--between", request.between,
                     "Nodes in several zones and the network between them, such as '{\"zones\": 2, "
                     "\"bandwidth\": \"100 Gb/s\", \"dollars_per_gb\": 0.01}'");
  command
      .add_option("--nodes", request.nodes,
                  "Node types to consider: p5,own.json, names or files of nodes or clusters (all "
                  "that can be rented)")
      ->delimiter(',');
  command.callback([flags, &exit_code] { exit_code = buy(*flags); });
}

}  // namespace orrery::scenarios
