#pragma once
// The simple commands of a shell script with their words expanded, as far as a launch script needs:
// quotes, continued lines, variables with defaults (`${TP:-1}`), arrays, integer arithmetic.
// Nothing is executed. Conditions are taken as true and their other branch is skipped; loops run
// once; what a command would print, a positional argument and a variable that is not set stay
// unknown. Source  POSIX.1-2017, Shell & Utilities, chapter 2; Bash manual 5.2, arrays

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::scenarios {

struct ShellWord {
  std::string text;
  std::size_t line = 0;  // from 1

  /// Does a part of it depend on what is not known? That part is between two marks.
  bool is_unknown() const { return text.find(unknown_mark) != std::string::npos; }
  /// With unknown parts as they were written: "${WORLD_SIZE}".
  std::string shown() const;

  static constexpr char unknown_mark = '\x01';
};

struct ShellScript {
  std::vector<std::vector<ShellWord>> commands;
  std::vector<ShellWord> batch;                    // words of #SBATCH lines
  std::map<std::string, ShellWord> environment{};  // exported, or set for a command
  std::vector<std::string> notes{};
};

/// Errors  a quote, brace or bracket that nothing closes: InputError `file:line 3: ...`
ShellScript read_shell(std::string_view text, const std::string& file);

/// `word` such that a POSIX shell reads it back as one word, byte by byte: bare if it has only
/// letters, digits and _@%+=:,./- , else in single quotes.
std::string shell_quoted(std::string_view word);

}  // namespace orrery::scenarios
