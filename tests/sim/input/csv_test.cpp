#include "sim/input/csv.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace orrery {
namespace {

/// What the InputError of reading this text says.
std::string table_error(std::string_view text) {
  try {
    Table::parse(text, "t.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

template <class Action>
std::string cell_error(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST_CASE("Cells are found by the name of their column") {
  const Table table = Table::parse("run,gpus,time_s\na, 1024 ,2.5\nb,,-1e-3\n", "t.csv");
  REQUIRE(table.size() == 2);
  CHECK(table.columns() == std::vector<std::string>{"run", "gpus", "time_s"});
  CHECK(table[0].text("run") == "a");
  CHECK(table[0].text("gpus") == "1024");
  CHECK(table[0].integer("gpus") == 1024);
  CHECK(table[0].number("time_s") == 2.5);
  CHECK(table[1].integer("gpus") == std::nullopt);
  CHECK(table[1].number("time_s") == -1e-3);
  CHECK(table[1].text("absent").empty());
  CHECK(table.has("gpus"));
  CHECK_FALSE(table.has("absent"));
}

TEST_CASE("Quoted cells hold commas and quotes, and a line break in one ends no row") {
  const Table table =
      Table::parse("a,b\n\"x, y\",\"say \"\"hi\"\"\"\n\"two\nlines\",\"\"\n5,6\n", "t.csv");
  REQUIRE(table.size() == 3);
  CHECK(table[0].text("a") == "x, y");
  CHECK(table[0].text("b") == R"(say "hi")");
  CHECK(table[1].text("b").empty());
  CHECK(table[2].place() == "t.csv:line 5");  // the quoted line break counts as a line
}

TEST_CASE("Line ends of Windows, a byte-order mark, empty lines and a missing last end are read") {
  const Table table = Table::parse(
      "\xEF\xBB\xBF"
      "a,b\r\n\r\n1,\"2\"\r\n\n3,",
      "t.csv");
  REQUIRE(table.size() == 2);
  CHECK(table.columns() == std::vector<std::string>{"a", "b"});
  CHECK(table[0].integer("b") == 2);
  CHECK(table[1].integer("a") == 3);
  CHECK(table[1].text("b").empty());
  CHECK(table[1].place() == "t.csv:line 5");
}

TEST_CASE("A header alone is a table of no rows") {
  CHECK(Table::parse("a,b\n", "t.csv").size() == 0);
  CHECK(Table::parse("a,b", "t.csv").columns().size() == 2);
}

TEST_CASE("A cell that is no number is reported by line, column and content") {
  const Table table = Table::parse("gpus,time\n1,2\nmany,1.5\n2.5,inf\n", "t.csv");
  CHECK(cell_error([&] { table[1].integer("gpus"); }) ==
        "t.csv:line 3: column 'gpus': expected an integer, found \"many\"");
  CHECK(cell_error([&] { table[2].integer("gpus"); }) ==
        "t.csv:line 4: column 'gpus': expected an integer, found \"2.5\"");
  CHECK(cell_error([&] { table[2].number("time"); }) ==
        "t.csv:line 4: column 'time': expected a number, found \"inf\"");
  CHECK(cell_error([&] { table[1].fail_expected("gpus", "a power of two"); }) ==
        "t.csv:line 3: column 'gpus': expected a power of two, found \"many\"");
}

TEST_CASE("A column whose name breaks the line is refused, in one line") {
  CHECK(table_error("\"two\nlines\"\nx\n") ==
        "t.csv:line 1: the name of column 1 has control characters");
}

TEST_CASE("A missing column is reported by its name and the one that looks like it") {
  const Table table = Table::parse("gpu,time\n", "t.csv");
  CHECK(cell_error([&] {
          table.require({"time", "gpus"});
        }) == "t.csv: column 'gpus' is missing; did you mean 'gpu'?");
  CHECK(cell_error([&] { table.require({"sequence"}); }) == "t.csv: column 'sequence' is missing");
  CHECK(cell_error([&] { table.require({"time", "gpu"}); }) == "no error");
}

TEST_CASE("A cell that a terminal would obey is refused where it is read, and nowhere else") {
  const Table rows = Table::parse("name,note\n\"a\nb\",1\nc,\x1b[31m\nd,\xE2\x80\xAE\n", "t.csv");
  CHECK(cell_error([&] { rows[0].text("name"); }) ==
        "t.csv:line 2: column 'name': expected text without control characters, found "
        "\"a\\u000ab\"");
  CHECK(rows[1].text("name") == "c");
  CHECK(cell_error([&] { rows[1].text("note"); }) ==
        "t.csv:line 4: column 'note': expected text without control characters, found "
        "\"\\u001b[31m\"");
  CHECK(cell_error([&] { rows[2].text("note"); }) ==
        "t.csv:line 5: column 'note': expected text without control characters, found "
        "\"\\u202e\"");
}

TEST_CASE("A table that is no table is refused by its line") {
  CHECK(table_error("") == "t.csv: is empty; expected a header line");
  CHECK(table_error("\n \n") == "t.csv: is empty; expected a header line");
  CHECK(table_error("a,b\n1\n") == "t.csv:line 2: expected 2 cells as in the header, found 1");
  CHECK(table_error("a,b\n1,2\n1,2,3\n") ==
        "t.csv:line 3: expected 2 cells as in the header, found 3");
  CHECK(table_error("a,,c\n") == "t.csv:line 1: column 2 has no name");
  CHECK(table_error("a,b,a\n") == "t.csv:line 1: duplicate column 'a'");
  CHECK(table_error("a\n\"x\n") == "t.csv:line 2: a quoted cell is not closed");
  CHECK(table_error("a\n\"x\"y\n") == "t.csv:line 2: text after the closing quote of a cell");
  CHECK(table_error("a\n\xFF\n") == "t.csv:line 2: is not UTF-8");
  CHECK(table_error(std::string_view{"a\n\0\n", 4}) == "t.csv: is binary, not text");
  CHECK(table_error(std::string(1001, ',')) == "t.csv:line 1: more than 1000 columns");
  CHECK(table_error("a\x1b[0m\n1\n") ==
        "t.csv:line 1: the name of column 1 has control characters");
  CHECK(cell_error([] { Table::load("/nowhere.csv"); }) ==
        "/nowhere.csv: cannot be read: No such file or directory");
}

}  // namespace
}  // namespace orrery
