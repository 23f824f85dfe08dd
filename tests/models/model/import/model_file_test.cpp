#include "models/model/model_file.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "models/model/model.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

namespace fs = std::filesystem;

/// A folder of its own for files, removed at the end.
class Folder {
 public:
  Folder() {
    std::string name = (fs::temp_directory_path() / "orrery-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path file = path_ / name;
    fs::create_directories(file.parent_path());
    std::ofstream{file} << text;
    return file.string();
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

constexpr const char* sizes =
    R"("model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
    "intermediate_size": 128, "vocab_size": 100)";

std::string config(const std::string& more) {
  return std::string{"{"} + sizes + more + "}";
}

std::string file_refusal(const std::string& path) {
  try {
    read_model(load_model(path).root());
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

std::string name_in(const std::string& path) {
  return read_model(load_model(path).root()).name;
}

}  // namespace

TEST_CASE("A model is named by its file, a config.json by its folder, unless it names itself") {
  const Folder folder;
  CHECK(name_in(folder.write("small.json", config(""))) == "small");
  CHECK(name_in(folder.write("tiny/config.json", config(""))) == "tiny");
  CHECK(name_in(folder.write("a/config.json", config(R"(, "_name_or_path": "meta/tiny")"))) ==
        "meta/tiny");
  CHECK(name_in(folder.write("b/config.json", config(R"(, "_name_or_path": "")"))) == "b");
  CHECK(name_in(folder.write("c/config.json", config(R"(, "name": "mine")"))) == "mine");
}

TEST_CASE("A folder with a config.json is a model") {
  const Folder folder;
  folder.write("tiny/config.json", config(""));
  folder.write("empty/readme", "");
  CHECK(config_of_folder(folder / "tiny") == folder / "tiny/config.json");
  CHECK(config_of_folder(folder / "empty") == std::nullopt);
  CHECK(config_of_folder(folder / "tiny/config.json") == std::nullopt);
  CHECK(file_refusal(folder / "empty") ==
        (folder / "empty") + ": is a folder without a config.json");
}

TEST_CASE("Numbers that only Python writes matter where a number is read") {
  const Folder folder;
  const std::string ignored = folder.write(
      "a.json", config(R"(, "time_step_limit": [0.0, Infinity, -Infinity, NaN], "note": "NaN")"));
  CHECK(file_refusal(ignored) == "accepted");
  const std::string read = folder.write("b.json", config(", \"rms_norm_eps\": NaN"));
  CHECK(file_refusal(read) == read + ":/rms_norm_eps: expected a number, found \"NaN\"");
  const std::string size = folder.write("c.json", config(", \"head_dim\": Infinity"));
  CHECK(file_refusal(size) ==
        size + ":/head_dim: expected an integer from 1 to 4096, found \"Infinity\"");
  const std::string other = folder.write("d.json", config(", \"head_dim\": infinity"));
  CHECK(file_refusal(other).starts_with(other + ":line 2: is not JSON: invalid literal"));
}

TEST_CASE("A key given twice is refused if it decides anything; the last of others counts") {
  const Folder folder;
  CHECK(name_in(folder.write("a.json",
                             config(R"(, "_name_or_path": "a", "_name_or_path": "b")"))) == "b");
  const std::string twice = folder.write("b.json", config(R"(, "vocab_size": 200)"));
  CHECK(file_refusal(twice) == twice + ":/vocab_size: duplicate key");
}

TEST_CASE("A byte order mark before a config is no part of it") {
  const Folder folder;
  CHECK(file_refusal(folder.write("a.json", "\xef\xbb\xbf" + config(""))) == "accepted");
}

}  // namespace orrery::models
