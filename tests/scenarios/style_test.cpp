#include "scenarios/report/style.hpp"

#include <catch2/catch.hpp>

namespace orrery::scenarios {

TEST_CASE("A bar is as long as its share, to an eighth of a column") {
  CHECK(bar(0, 1, 4) == "████");
  CHECK(bar(0.5, 1, 4) == "  ██");
  // 0.40625 of four columns is 1.625: one whole and five eighths.
  CHECK(bar(0, 0.40625, 4) == "█▋");
}

TEST_CASE("A bar of next to nothing shows, one of nothing does not") {
  CHECK(bar(0.5, 0.5000001, 4) == "  ▏");
  CHECK(bar(0, 0, 4).empty());
}

TEST_CASE("A bar beyond its line ends there") {
  CHECK(bar(0, 1.5, 4) == "████");
}

TEST_CASE("Text is broken at blanks, and a long word stays whole") {
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("incomprehensible", 7) == std::vector<std::string>{"incomprehensible"});
}

TEST_CASE("Columns of a table are as wide as their widest cell, in characters") {
  TextTable table{{"<name", "size"}};
  table.add({"µs", "12"});
  table.add({"second", "3"});
  CHECK(table.text(false) ==
        "  name    size\n"
        "  µs        12\n"
        "  second     3\n");
}

TEST_CASE("Colour is only there when asked for") {
  CHECK(toned("x", Tone::good, false) == "x");
  CHECK(toned("x", Tone::good, true) == "\x1b[32mx\x1b[0m");
}

}  // namespace orrery::scenarios
