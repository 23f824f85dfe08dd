// `orrery fit software --from RUNS.csv`: fits the numbers of a stack's profile to measured steps.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>

#include "scenarios/command/commands.hpp"
#include "scenarios/command/terminal/document.hpp"
#include "scenarios/command/terminal/progress.hpp"
#include "scenarios/command/terminal/repeated.hpp"
#include "scenarios/fitting/profile/leave_out_groups.hpp"
#include "scenarios/fitting/profile/software_fit.hpp"
#include "sim/errors.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::scenarios {

namespace {

struct SoftwareFlags {
  std::string from, out, leave_out;
  std::vector<std::string> stacks, software;
  unsigned threads = 0;
  bool generic = false;
  bool json = false;
};

void write(const std::filesystem::path& path, const Json& profile) {
  write_durably(path.string(), profile.dump(2) + "\n");
}

/// Writes one profile to `out` if that ends in .json, else a file per profile to the folder `out`.
void write_profiles(const std::string& out, const SoftwareFits& fits) {
  const bool one = std::filesystem::path{out}.extension() == ".json";
  if (one && fits.fits.size() != 1) {
    throw InputError{"--out", fmt::format("{} profiles do not fit in one file; name a folder, or "
                                          "one of them with --stack",
                                          fits.fits.size())};
  }
  if (one) return write(out, fits.fits.front().profile);
  make_folder(out);
  for (const SoftwareFit& fit : fits.fits) {
    write(std::filesystem::path{out} / (fit.name + ".json"), fit.profile);
  }
}

/// Progress that counts trials: their total is not known in advance.
std::function<bool()> counted_trials() {
  const bool watched = isatty(STDERR_FILENO) == 1;
  return [watched, trials = 0]() mutable {
    if (watched) fmt::print(stderr, "\r\x1b[K{} trials", ++trials);
    if (watched) std::fflush(stderr);
    return !InterruptGuard::interrupted();
  };
}

int run(const SoftwareFlags& flags) {
  const orrery::Table table = orrery::Table::load(flags.from);
  SoftwareFitOptions options;
  options.stacks = flags.stacks;
  options.leave_out = columns_of(flags.leave_out);
  options.from_generic = flags.generic;
  for (const std::string& path : flags.software) {
    options.profiles.push_back(models::resolve_profile(Document::load(path).root(), {}).profile);
  }
  const InterruptGuard guard;
  options.trials = {.threads = flags.threads, .keep_going = counted_trials()};
  const SoftwareFits fits = fit_software(table, options);
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r\x1b[K");
  if (!flags.out.empty()) write_profiles(flags.out, fits);
  if (flags.json)
    print_document(to_json(table, fits));
  else
    fmt::print("{}", table_of(table, fits));
  return fits.complete ? exit_done : InterruptGuard::exit_code();
}

}  // namespace

void add_fit_software(CLI::App& fit, int& exit_code) {
  const auto flags = std::make_shared<SoftwareFlags>();
  CLI::App& command = *fit.add_subcommand("software", "Fit the numbers of a software profile");
  command.add_option("--from", flags->from, "Measured training runs, CSV")->required();
  repeated(
      *command.add_option("--stack", flags->stacks,
                          "Stack or profile to fit; repeat the flag for more (all in the file)"));
  repeated(*command.add_option("--software", flags->software,
                               "Profile to start from instead of the shipped one of its stacks; "
                               "repeat the flag for more"));
  command.add_option(
      "--leave-out", flags->leave_out,
      "Columns whose groups are left out in turn (model,gpu; size; gpus; tp,pp; run)");
  command.add_flag("--from-generic", flags->generic,
                   "The prior is the generic profile's numbers, not the stack's own");
  command.add_option("--out", flags->out, "FILE.json for one profile, else a folder");
  command.add_option("--threads", flags->threads, "Threads (all of the machine)");
  command.add_flag("--json", flags->json, "One JSON document on stdout");
  command.callback([flags, &exit_code] { exit_code = run(*flags); });
}

}  // namespace orrery::scenarios
