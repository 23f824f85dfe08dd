#include "sim/input/document.hpp"

#include "sim/input/parse_json.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace orrery {
namespace {

/// What an InputError says; "no error" if none was thrown.
template <class Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string parse_error(std::string_view text) {
  return error_of([&] { Document::parse(text, "a.json"); });
}

const char* const cluster = R"({
  "cluster": {"fabric": {"bandwith": "450", "bandwidth": "450 GB/s", "latency": null}},
  "nodes": [1, 2, 3],
  "ratio": 1.5, "tokens": 1e9, "on": true, "kind": "torus", "huge": 18446744073709551615,
  "a/b": {"c~d": 7}
})";

TEST_CASE("A file that cannot be read is reported with the reason") {
  CHECK(error_of([] { Document::load("/nowhere/x.json"); }) ==
        "/nowhere/x.json: cannot be read: No such file or directory");
  CHECK(error_of([] { Document::load("/"); }) == "/: cannot be read: Is a directory");
}

TEST_CASE("A document of more than 64 MiB is refused before it is parsed") {
  const std::string large((std::size_t{64} << 20) + 1, ' ');
  CHECK(parse_error(large) == "a.json: larger than 64 MiB");
}

TEST_CASE("A file is read whole and knows its own name") {
  std::string path = "/tmp/orrery-document-XXXXXX";
  close(mkstemp(path.data()));
  std::ofstream{path} << R"({"n": 7})";
  const Document document = Document::load(path);
  std::remove(path.c_str());
  CHECK(document.name() == path);
  CHECK(document.root()["n"].as<int>() == 7);
}

TEST_CASE("Text that is not JSON is reported by its line") {
  CHECK(parse_error("") == "a.json: is empty");
  CHECK(parse_error(" \n\t ") == "a.json: is empty");
  CHECK(parse_error("{\n\"a\": 1,\n") ==
        "a.json:line 3: is not JSON: unexpected end of input; expected string literal");
  CHECK(parse_error("{\"a\": 1}\n\n]") ==
        "a.json:line 3: is not JSON: unexpected ']'; expected end of input");
  CHECK(parse_error("{\"a\": 1e999}") ==
        "a.json:line 1: is not JSON: number overflow parsing '1e999'");
  CHECK(parse_error("[1, // no comments\n2]") ==
        "a.json:line 1: is not JSON: invalid literal; last read: '1, /'");
  CHECK(parse_error(std::string{"{\"a\0\": 1}", 9}) == "a.json: is binary, not text");
  CHECK(parse_error("\x7F"
                    "ELF\x02\x01\x01\xFF") == "a.json:line 1: is not UTF-8");
  CHECK(parse_error("{\"a\":\n\"\xC3\x28\"}") == "a.json:line 2: is not UTF-8");
}

TEST_CASE("A key given twice is refused, or its last value counts where that is asked for") {
  const std::string text = R"({"a": {"x": 1, "y": [1, 2], "x": {"z": 3}, "y": 4}, "a2": 5})";
  CHECK(parse_error(text) == "a.json:/a/x: duplicate key");
  CHECK(parse_json(text, "a.json", {.repeatable = every_key}).dump() ==
        R"({"a":{"x":{"z":3},"y":4},"a2":5})");
}

TEST_CASE("Text that UTF-16 spells is named") {
  CHECK(parse_error("\xFF\xFE{") ==
        "a.json: is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)");
}

TEST_CASE("An unfinished string as long as the file makes a short error") {
  const std::string message = parse_error("\"" + std::string(1'000'000, 'x'));
  CHECK(message ==
        "a.json:line 1: is not JSON: invalid string: missing closing quote; last read: "
        "'\"" +
            std::string(24, 'x') + "...");
}

TEST_CASE("A duplicate key is refused with its address") {
  CHECK(parse_error(R"({"plan": {"tensor": 1, "tensor": 2}})") ==
        "a.json:/plan/tensor: duplicate key");
  CHECK(parse_error(R"([0, {"x": [], "a/b": [1, {"c~": 1, "c~": 1}]}])") ==
        "a.json:/1/a~1b/1/c~0: duplicate key");
}

TEST_CASE("Nesting is limited to 256 levels and never exhausts the stack") {
  CHECK(parse_error(std::string(256, '[') + std::string(256, ']')) == "no error");
  CHECK(parse_error(std::string(257, '[') + std::string(257, ']')) ==
        "a.json: nested deeper than 256 levels");
  std::string deep;
  for (int level = 0; level < 100'000; ++level) deep += R"({"a":)";
  CHECK(parse_error(deep) == "a.json: nested deeper than 256 levels");
}

TEST_CASE("A hundred thousand members are read in the order written") {
  std::string text = "{";
  for (int key = 100'000; key > 0; --key) text += "\"" + std::to_string(key) + "\": 0,";
  text += "\"0\": 0}";
  const Document document = Document::parse(text, "a.json");
  const auto members = document.root().members();
  CHECK(members.size() == 100'001);
  CHECK(members.front().first == "100000");
  CHECK(members.back().second.pointer() == "/0");
}

TEST_CASE("A value is reached by its address") {
  const Document document = Document::parse(cluster, "c.json");
  const Node root = document.root();
  CHECK(root["cluster"]["fabric"]["bandwidth"].as<Bandwidth>() == 450_GBps);
  CHECK(root["nodes"].at(2).place() == "c.json:/nodes/2");
  CHECK(root["nodes"].elements().size() == 3);
  CHECK(root["a/b"]["c~d"].place() == "c.json:/a~1b/c~0d");
  CHECK(root.place() == "c.json");
  CHECK(root.file() == "c.json");
  CHECK(root["tokens"].as<std::int64_t>() == 1'000'000'000);  // 1e9 is a whole number
  CHECK(root["ratio"].as<double>() == 1.5);
  CHECK(root["on"].as<bool>());
  CHECK(root["kind"].as<std::string>() == "torus");
  CHECK(root["kind"].one_of({"fat-tree", "torus"}) == 1);
  CHECK(root.value_or("steps", 9) == 9);
  CHECK(root.value_or("nothing", 2_us) == 2_us);
  CHECK(root["nodes"].at(1).integer(1, 2) == 2);
}

TEST_CASE("Null counts as absent where a member may be") {
  const Document document = Document::parse(cluster, "c.json");
  const Node fabric = document.root()["cluster"]["fabric"];
  CHECK_FALSE(fabric.has("latency"));
  CHECK(fabric.value_or("latency", 5_us) == 5_us);
  CHECK(error_of([&] { fabric["latency"].as<Time>(); }) ==
        R"(c.json:/cluster/fabric/latency: expected a time such as "3.5 us", found null)");
}

TEST_CASE("Every wrong value is reported with its address, what was expected and what was found") {
  const Document document = Document::parse(cluster, "c.json");
  const Node root = document.root();
  const Node fabric = root["cluster"]["fabric"];
  CHECK(error_of([&] { fabric["bandwith"].as<Bandwidth>(); }) ==
        R"(c.json:/cluster/fabric/bandwith: expected a rate such as "450 GB/s", found "450")");
  CHECK(error_of([&] { root["ratio"].as<Bytes>(); }) ==
        R"(c.json:/ratio: expected a size such as "80 GiB", found 1.5)");
  CHECK(error_of([&] { root["ratio"].as<int>(); }) ==
        "c.json:/ratio: expected an integer, found 1.5");
  CHECK(error_of([&] { root["huge"].as<std::int64_t>(); }) ==
        "c.json:/huge: expected an integer, found 18446744073709551615");
  CHECK(error_of([&] { root["tokens"].integer(1, 64); }) ==
        "c.json:/tokens: expected an integer from 1 to 64, found 1000000000.0");
  CHECK(error_of([&] { root["nodes"].at(0).integer(2, INT64_MAX); }) ==
        "c.json:/nodes/0: expected an integer of at least 2, found 1");
  CHECK(error_of([&] { root["kind"].as<double>(); }) ==
        R"(c.json:/kind: expected a number, found "torus")");
  CHECK(error_of([&] { root["on"].as<std::string>(); }) ==
        "c.json:/on: expected a string, found true");
  CHECK(error_of([&] { root["ratio"].as<bool>(); }) ==
        "c.json:/ratio: expected true or false, found 1.5");
  CHECK(error_of([&] {
          root["kind"].one_of({"mesh", "star"});
        }) == R"(c.json:/kind: expected one of "mesh", "star", found "torus")");
  CHECK(error_of([&] {
          root["kind"].one_of({"mesh", "Torus"});
        }) ==
        R"(c.json:/kind: expected one of "mesh", "Torus", found "torus"; did you mean "Torus"?)");
  CHECK(error_of([&] { root["nodes"]["x"]; }) ==
        "c.json:/nodes: expected an object, found [1,2,3]");
  CHECK(error_of([&] { root["on"].elements(); }) == "c.json:/on: expected an array, found true");
  CHECK(error_of([&] { root["nodes"].at(3); }) ==
        "c.json:/nodes/3: missing; the array has 3 elements");
  CHECK(error_of([&] { root["plan"]; }) == "c.json:/plan: missing");
  CHECK(error_of([&] { root.fail("does not fit"); }) == "c.json: does not fit");
}

TEST_CASE("A typo is an error that names the nearest accepted key") {
  const Document document = Document::parse(cluster, "c.json");
  const Node root = document.root();
  CHECK(error_of([&] {
          root["cluster"]["fabric"].only({"bandwidth", "latency", "kind"});
        }) ==
        "c.json:/cluster/fabric/bandwith: unknown key; did you mean 'bandwidth'? "
        "accepted: bandwidth, latency, kind");
  CHECK(error_of([&] {
          root["cluster"].only({"node", "count"});
        }) == "c.json:/cluster/fabric: unknown key; accepted: node, count");
  CHECK(error_of([&] { root["cluster"].only({"fabric"}); }) == "no error");
}

TEST_CASE("What was found is shortened to one line of 60 bytes, never inside a character") {
  CHECK(shortened(Json(std::string(1000, 'x'))) == "\"" + std::string(56, 'x') + "...");
  CHECK(shortened(Json("a\nb")) == R"("a\nb")");
  std::string greek;
  for (int letter = 0; letter < 40; ++letter) greek += "\u03BC";
  // A quote and 28 letters of 2 bytes are 57; the dots make 60.
  CHECK(shortened(Json(greek)) == "\"" + greek.substr(0, 56) + "...");
  CHECK(shortened(Json::array({1, 2})) == "[1,2]");
  CHECK(shortened(Json("\xFF")) == "\"\uFFFD\"");
}

TEST_CASE("Text that a terminal would obey is refused, in values and in keys") {
  const auto read = [](const std::string& text) {
    const Document document = Document::parse("{\"name\": \"" + text + "\"}", "c.json");
    return error_of([&] { document.root()["name"].as<std::string>(); });
  };
  const std::string expected = "c.json:/name: expected text without control characters, found ";
  CHECK(read("a\\u001b[31m") == expected + "\"a\\u001b[31m\"");
  CHECK(read("a\\nb") == expected + "\"a\\nb\"");
  CHECK(read("a\xC2\x9B") == expected + "\"a\\u009b\"");
  CHECK(read("a\xE2\x80\xAE") == expected + "\"a\\u202e\"");
  CHECK(read("a\xE2\x81\xA6") == expected + "\"a\\u2066\"");
  CHECK(read("Mistral 8\xC3\x97 \xE2\x80\x93 \xE6\xBC\xA2 \xF0\x9F\x98\x80") == "no error");
  const Document keys = Document::parse("{\"links\": {\"a\\nb\": 1}}", "c.json");
  CHECK(error_of([&] { keys.root()["links"].members(); }) ==
        "c.json:/links/a\\u000ab: a key has control characters");
}

TEST_CASE("A key with a line break cannot break the line of the error") {
  const Document document = Document::parse("{\"a\\nb\": 1}", "c.json");
  CHECK(error_of([&] { document.root().only({"x"}); }) ==
        "c.json:/a\\u000ab: unknown key; accepted: x");
  CHECK(error_of([&] { document.root().fail("unknown GPU 'a\nb'"); }) ==
        "c.json: unknown GPU 'a\\u000ab'");
}

}  // namespace
}  // namespace orrery
