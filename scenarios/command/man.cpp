// orrery man: the manual page, made of the same tables as --help.

#include <fmt/format.h>

#include <memory>

#include "scenarios/command/commands.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

/// Text in troff: backslashes and hyphens as they are, and no request at the start of a line.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) safe += "\\&";
    if (c == '\\') {
      safe += "\\e";
    } else if (c == '-') {
      safe += "\\-";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// Lines that are shown as written.
std::string roff_lines(std::string_view text) {
  std::string lines = ".nf\n";
  for (const std::string_view each : split(text, '\n')) lines += roff(each) + "\n";
  return lines + ".fi\n";
}

std::string option_entry(const CLI::Option& option) {
  std::string names = option.get_name(option.get_positional(), true);
  if (names.empty()) names = option.get_name();
  const std::string type = option.get_items_expected_max() > 0 ? option.get_type_name() : "";
  return fmt::format(".TP\n.B {}{}\n{}\n", roff(names), type.empty() ? "" : " " + roff(type),
                     roff(option.get_description()));
}

const auto every_subcommand = [](const CLI::App*) { return true; };

/// The entry of a command, and of those below it.
std::string command_entry(const CLI::App& command, const std::string& above) {
  const std::string name = above + " " + command.get_name();
  std::string text = fmt::format(".SS {}\n{}.\n", roff(name), roff(command.get_description()));
  for (const CLI::Option* each : command.get_options()) {
    if (each->get_name() != "--help" && each->get_name(false, true) != "-h,--help") {
      text += option_entry(*each);
    }
  }
  if (const std::string footer = command.get_footer(); !footer.empty()) {
    text += ".PP\n" + roff_lines(footer);
  }
  for (const CLI::App* each : command.get_subcommands(every_subcommand)) {
    text += command_entry(*each, name);
  }
  return text;
}

std::string manual_page() {
  CLI::App application;
  int unused = exit_done;
  add_every_command(application, unused);
  std::string text =
      ".TH ORRERY 1\n.SH NAME\norrery \\- predicts what training costs on a cluster of GPUs\n"
      ".SH SYNOPSIS\n.B orrery\n.I COMMAND\n.RI [ OPTIONS ]\n.SH DESCRIPTION\n"
      "Predicts time, memory, energy and money of training a large model on a GPU cluster, finds "
      "plans and clusters, and executes the same step for real where it is small enough.\n"
      ".PP\nA model, cluster or software profile is a path or a name of the catalogue "
      "(\\fBorrery show\\fR); every number has a JSON pointer, which \\fB\\-\\-set\\fR changes.\n"
      ".SH COMMANDS\n";
  for (const CLI::App* each : application.get_subcommands(every_subcommand)) {
    text += command_entry(*each, "orrery");
  }
  text +=
      ".SH EXIT STATUS\n.TP\n.B 0\ndone\n.TP\n.B 1\nthe answer is no: the plan does not fit, a "
      "deadline is not kept\n.TP\n.B 2\nan error in the input: one line with file and pointer\n"
      ".TP\n.B 3\nan internal error\n.TP\n.B 74\nan output that cannot be written\n"
      ".PP\n\\fBorrery execute\\fR has more.\n.SH FILES\n"
      "\\fBorrery schema\\fR lists the documents that are read and printed, with their JSON "
      "Schemas.\n";
  return text;
}

}  // namespace

void add_man(CLI::App& application, int& exit_code) {
  CLI::App& command =
      *application.add_subcommand("man", "Print the manual page, every command with its flags");
  command.callback([&exit_code] {
    fmt::print("{}", manual_page());
    exit_code = exit_done;
  });
}

}  // namespace orrery::scenarios
