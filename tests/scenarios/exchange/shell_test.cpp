#include "scenarios/exchange/shell.hpp"

#include <catch2/catch.hpp>
#include <cstdio>
#include <random>

#include "scenarios/exchange/launch_file.hpp"
#include "scenarios/exchange/writers.hpp"
#include "sim/errors.hpp"
#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

/// The words of the last command, joined by |.
std::string last_words(const std::string& script) {
  const ShellScript read = read_shell(script, "run.sh");
  if (read.commands.empty()) return {};
  std::string text;
  for (const ShellWord& each : read.commands.back())
    text += (text.empty() ? "" : "|") + each.shown();
  return text;
}

std::string random_text(std::mt19937& random) {
  constexpr std::string_view risky =
      "'\"\\$`!#&|;<>(){}[]*?~ \t\n\r=-:,%@^\x01\x7f\xc3\xa9"
      "aZ0";
  std::string text;
  const std::size_t length = random() % 24;
  for (std::size_t i = 0; i < length; ++i) text += risky[random() % risky.size()];
  return text;
}

TEST_CASE("Variables of a launch script are expanded with their defaults") {
  CHECK(last_words("run --tp ${TP:-4}") == "run|--tp|4");
  CHECK(last_words("TP=8; run --tp ${TP:-4} \"$TP\" $TP") == "run|--tp|8|8|8");
  CHECK(last_words("TP=\nrun ${TP:-4}${TP-7}") == "run|4");
  CHECK(last_words("N=2; run ${N:+many} ${M:+none}") == "run|many");
  CHECK(last_words("N=2; run $((N * (3 + 4) % 5))") == "run|4");
  CHECK(last_words("A=1; run ${B:-${A}${C:-3}}") == "run|13");
}

TEST_CASE("Arrays, quotes and continued lines of a launch script are words") {
  CHECK(last_words("A=(--x 1\n  # why\n  --y 'a b')\nA+=(--z)\nrun \"${A[@]}\" \"$@\"") ==
        "run|--x|1|--y|a b|--z");
  CHECK(last_words("O=\" \\\n --x 1 \\\n --y 2\"\nrun $O") == "run|--x|1|--y|2");
  CHECK(last_words("run a\\ b 'c $d' \"e\\\"f\" \\\n  g # h") == "run|a b|c $d|e\"f|g");
  CHECK(last_words("EMPTY=()\nrun \"${EMPTY[@]}\" x") == "run|x");
}

TEST_CASE("What a launch script alone does not tell stays unknown") {
  CHECK(last_words("run --tp $TP ${10} $(nproc)") == "run|--tp|${TP}|${10}|$(nproc)");
  const ShellScript read = read_shell("run $TP", "run.sh");
  CHECK(read.commands[0][1].is_unknown());
}

TEST_CASE("The first branch of a condition is read, the other is not") {
  const std::string script = "if [ x = y ]; then A=1; else A=2; fi\nrun $A";
  CHECK(last_words(script) == "run|1");
  CHECK(read_shell(script, "run.sh").notes.front() == "line 1: the condition is taken as true");
}

TEST_CASE("A quote that nothing closes is an error with its line") {
  CHECK_THROWS_WITH(read_shell("a\nrun 'x", "run.sh"),
                    "run.sh:line 2: a quote is not closed: expected '");
  CHECK_THROWS_WITH(read_shell("A=(1", "run.sh"),
                    "run.sh:line 1: an array is not closed: expected )");
  std::string nested;
  for (int i = 0; i < 500; ++i) nested += "${a:-";
  CHECK_THROWS_AS(read_shell("run " + nested + std::string(500, '}'), "run.sh"), InputError);
}

TEST_CASE("Any bytes are read without a crash") {
  std::mt19937 random{7};
  for (int i = 0; i < 20000; ++i) {
    std::string script = random_text(random) + random_text(random) + random_text(random);
    try {
      read_shell(script, "run.sh");
    } catch (const InputError&) {
    }
  }
  SUCCEED();
}

TEST_CASE("A quoted word is the same word to our reader and to sh") {
  std::mt19937 random{11};
  const Scratch scratch;
  std::string script;
  std::vector<std::string> texts;
  for (int i = 0; i < 400; ++i) {
    std::string text = random_text(random);
    std::erase(text, ShellWord::unknown_mark);
    const ShellScript read = read_shell("run " + shell_quoted(text), "run.sh");
    REQUIRE(read.commands.size() == 1);
    REQUIRE(read.commands[0].size() == 2);
    CHECK(read.commands[0][1].text == text);
    script += "printf '%s\\0' " + shell_quoted(text) + "\n";
    texts.push_back(text);
  }
  const std::string line = "sh " + scratch.write("quoted.sh", script) + " > " + scratch.path("out");
  REQUIRE(std::system(line.c_str()) == 0);
  std::string expected;
  for (const std::string& each : texts) expected += each + '\0';
  CHECK(scratch.read("out") == expected);
}

TEST_CASE("Text that a user typed stays inside its value in YAML and TOML") {
  std::mt19937 random{13};
  for (int i = 0; i < 2000; ++i) {
    const std::string text = random_text(random);
    if (text.find('\xc3') != std::string::npos || text.find('\xa9') != std::string::npos) continue;
    const Json document{{"a", text}, {"list", Json::array({text, 1})}, {"z", {{"last", true}}}};
    CHECK(json_of_yaml(yaml_text(document, {text, "x\ny: 1"}), "a.yaml") == document);
    CHECK(json_of_toml(toml_text(document, {text, "x\ny = 1"}), "a.toml") == document);
  }
}

}  // namespace
}  // namespace orrery::scenarios
