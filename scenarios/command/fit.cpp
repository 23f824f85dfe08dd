// `orrery fit curves --from FILE.csv`: fits curves to measurements, the shipped ones or the user's.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/fitting/kernels/curve_tables.hpp"
#include "scenarios/fitting/profile/beyond_range.hpp"
#include "sim/errors.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct FitFlags {
  std::string from;
  std::string leave_out = "curve";
  std::string out;
  std::size_t worst = 10;
  bool plain = false;
  bool json = false;
};

LeaveOut leave_out_named(const std::string& word) {
  if (word == "curve") return LeaveOut::curve;
  if (word == "gpu") return LeaveOut::gpu;
  throw InputError{"--leave-out", "expected curve, gpu or range, found \"" + word + "\""};
}

/// A file name for a curve: other characters of its name become '-'.
std::string file_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '-');
  return name + ".json";
}

void write_curves(const std::string& folder, const std::vector<CurveCard>& cards) {
  make_folder(folder);
  for (const CurveCard& card : cards) {
    const std::filesystem::path path = std::filesystem::path{folder} / file_name(card.name);
    write_durably(path.string(), curve_file(card).dump(1) + "\n");
  }
}

void run_fit(const FitFlags& flags) {
  if (flags.leave_out == "range") {
    if (!flags.out.empty()) throw InputError{"--out", "not with --leave-out range"};
    const auto points = points_beyond_range(orrery::Table::load(flags.from));
    if (flags.json)
      print_document({{"kinds", beyond_range_json(points)}});
    else
      fmt::print("{}", beyond_range_text(points));
    return;
  }
  const CurveReport report =
      fit_curves(orrery::Table::load(flags.from), leave_out_named(flags.leave_out),
                 flags.plain ? Residual::none : Residual::nearest);
  if (!flags.out.empty()) write_curves(flags.out, report.cards);
  if (flags.json)
    print_document(to_json(report, {}));
  else
    fmt::print("{}", table_of(report, {}, flags.worst));
}

}  // namespace

void add_fit(CLI::App& application, int& exit_code) {
  const auto flags = std::make_shared<FitFlags>();
  CLI::App* fit =
      application.add_subcommand("fit", "Fit curves or software profiles to measurements");
  fit->require_subcommand(1);
  CLI::App* curves = fit->add_subcommand("curves", "Fit curves of kernels or collectives");
  curves->add_option("--from", flags->from, "Measured kernels or collectives, CSV")->required();
  curves->add_option("--leave-out", flags->leave_out,
                     "What is left out of the fit that predicts a row: curve, gpu, or range: all "
                     "larger or all smaller sizes (curve)");
  curves->add_option("--out", flags->out, "Folder for one JSON file per curve");
  curves->add_option("--worst", flags->worst, "How many of the worst rows to list (10)");
  curves->add_flag(
      "--plain", flags->plain,
      "Kernels: only the formulas, without corrections by the nearest measured shapes");
  curves->add_flag("--json", flags->json, "One JSON document on stdout");
  curves->callback([flags, &exit_code] {
    run_fit(*flags);
    exit_code = exit_done;
  });
  add_fit_software(*fit, exit_code);
}

}  // namespace orrery::scenarios
