#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

std::string root_readme() {
  std::ostringstream text;
  text << std::ifstream{ORRERY_SOURCE "/README.md"}.rdbuf();
  return text.str();
}

/// The lines from the one that begins with `first` to the one that begins with `last`.
std::string lines_between(const std::string& text, const std::string& first,
                          const std::string& last) {
  const std::size_t begin = text.find(first);
  const std::size_t end = text.find('\n', text.find(last, begin));
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return text.substr(begin, end - begin);
}

}  // namespace

TEST_CASE("The losses that the README shows are those of its first command") {
  const std::string report = orrery("simulate llama3-70b-64-h100").out;
  const auto losses = [](const std::string& text) {
    return lines_between(text, "From the ideal machine to this step", "  predicted step ");
  };
  CHECK(losses(root_readme()) == losses(report));
}

}  // namespace orrery::scenarios
