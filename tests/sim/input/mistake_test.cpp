#include "sim/input/mistake.hpp"

#include <catch2/catch.hpp>

#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery {
namespace {

template <class Read>
Mistake mistake_in(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    return mistake_of(error);
  }
  FAIL("nothing was refused");
  return {};
}

void check(const Mistake& mistake, const Mistake& expected) {
  CHECK(mistake.file == expected.file);
  CHECK(mistake.pointer == expected.pointer);
  CHECK(mistake.found == expected.found);
  CHECK(mistake.accepted == expected.accepted);
}

}  // namespace

TEST_CASE("A wrong value is taken apart into file, pointer, found and accepted") {
  const Document document = Document::parse(R"({"a": {"b": "x, found y"}})", "dir/a.json");
  check(mistake_in([&] { document.root()["a"]["b"].as<Bandwidth>(); }),
        {"dir/a.json", "/a/b", "\"x, found y\"", "a rate such as \"450 GB/s\""});
  check(mistake_in([&] {
          document.root().only({"b", "c"});
        }),
        {"dir/a.json", "/a", "unknown key", "b, c"});
  check(mistake_in([&] { document.root()["c"]; }), {"dir/a.json", "/c", "missing", ""});
}

TEST_CASE("A wrong cell is taken apart into file, line and column") {
  const Table table = Table::parse("gpus\nmany\n", "runs.csv");
  check(mistake_in([&] { table[0].integer("gpus"); }),
        {"runs.csv", "line 2: column 'gpus'", "\"many\"", "an integer"});
}

TEST_CASE("A flag stands in the file's place, a pointer after it in the pointer's") {
  check(mistake_of({"--tokens", "expected a number, found 'lots'"}),
        {"--tokens", "", "'lots'", "a number"});
  check(mistake_of({"--plan:/tensor", "tensor 3 does not divide 12 heads"}),
        {"--plan", "/tensor", "tensor 3 does not divide 12 heads", ""});
  check(mistake_of({"--set /plan/x", "no such value; /plan has: y"}),
        {"--set", "/plan/x", "no such value; /plan has: y", ""});
  check(mistake_of({"/a/runs.csv", "is empty"}), {"/a/runs.csv", "", "is empty", ""});
  check(mistake_of(InputError{"unknown scenario 'x'; known: a b"}),
        {"", "", "unknown scenario 'x'", "a b"});
}

}  // namespace orrery
