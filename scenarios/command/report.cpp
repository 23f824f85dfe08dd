// orrery report: one page of HTML of what other commands printed with --json.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/page/page.hpp"
#include "scenarios/whatif/sweep_store.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct ReportFlags {
  std::vector<std::string> results;
  std::string out;
};

int write_page(const ReportFlags& flags) {
  std::vector<Document> documents;
  for (const std::string& each : flags.results) {
    if (is_sweep_store(each)) {
      throw InputError{
          printable(each),
          "is the store of a sweep; expected what --json of simulate, plan, buy, train or check "
          "prints: for a page of a variant give the values of its line to orrery simulate, with "
          "--set POINTER=VALUE and --json"};
    }
    documents.push_back(Document::load(each));
  }
  const std::string page = page_of(documents);
  write_durably(flags.out, page);
  fmt::print(stderr, "wrote {}, {:.1f} kB\n", printable(flags.out),
             static_cast<double>(page.size()) / 1e3);
  return exit_done;
}

}  // namespace

void add_report(CLI::App& application, int& exit_code) {
  CLI::App& command = *application.add_subcommand(
      "report", "Write one page of HTML of results: answers, ranges, assumptions, pictures");
  const auto flags = std::make_shared<ReportFlags>();
  command
      .add_option("results", flags->results,
                  "Files with what --json of simulate, plan, buy, train or check printed; several "
                  "are compared")
      ->required();
  command.add_option("--out", flags->out, "File for the page")->required();
  command.callback([flags, &exit_code] { exit_code = write_page(*flags); });
}

}  // namespace orrery::scenarios
