#include "sim/input/error_fields.hpp"

#include <catch2/catch.hpp>

#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"

namespace orrery {
namespace {

template <class Read>
ErrorFields mistake_in(const Read& read) {
  try {
    read();
  } catch (const InputError& error) {
    return split_error(error);
  }
  FAIL("nothing was refused");
  return {};
}

void check(const ErrorFields& fields, const ErrorFields& expected) {
  CHECK(fields.file == expected.file);
  CHECK(fields.pointer == expected.pointer);
  CHECK(fields.found == expected.found);
  CHECK(fields.accepted == expected.accepted);
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
  check(split_error({"--tokens", "expected a number, found 'lots'"}),
        {"--tokens", "", "'lots'", "a number"});
  check(split_error({"--plan:/tensor", "tensor 3 does not divide 12 heads"}),
        {"--plan", "/tensor", "tensor 3 does not divide 12 heads", ""});
  check(split_error({"--set /plan/x", "no such value; /plan has: y"}),
        {"--set", "/plan/x", "no such value; /plan has: y", ""});
  check(split_error({"/a/runs.csv", "is empty"}), {"/a/runs.csv", "", "is empty", ""});
  check(split_error(InputError{"unknown scenario 'x'; known: a b"}),
        {"", "", "unknown scenario 'x'", "a b"});
}

}  // namespace orrery
