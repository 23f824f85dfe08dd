#pragma once
// The real binary, run as a shell runs it.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sim/input/document.hpp"
#include "tests/slow_build.hpp"

namespace orrery::scenarios {

/// A folder that lives as long as a test.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream{path(name), std::ios::binary} << text;
    return path(name);
  }
  std::string read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream{path(name), std::ios::binary}.rdbuf();
    return text.str();
  }

 private:
  std::filesystem::path folder_;
};

struct Ran {
  int exit_code = -1;
  std::string out, error;
  double seconds = 0;
};

/// `orrery ARGUMENTS`, quoted as a shell wants them.
inline Ran orrery(const std::string& arguments) {
  const Scratch scratch;
  const std::string line = std::string{ORRERY_COMMAND} + " " + arguments + " >" +
                           scratch.path("out") + " 2>" + scratch.path("error");
  const auto begin = std::chrono::steady_clock::now();
  const int status = std::system(line.c_str());
  Ran ran;
  ran.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  ran.out = scratch.read("out");
  ran.error = scratch.read("error");
  return ran;
}

/// Wrong input: nothing on stdout, one line on stderr, soon.
inline std::string refused_line(const std::string& arguments) {
  const Ran ran = orrery(arguments);
  INFO(arguments << "\n" << ran.error);
  CHECK(ran.exit_code == 2);
  CHECK(ran.out.empty());
  CHECK(ran.seconds < (slow_build ? 20 : 1));
  REQUIRE(!ran.error.empty());
  CHECK(ran.error.find('\n') == ran.error.size() - 1);
  return ran.error.substr(0, ran.error.size() - 1);
}

/// A report with every line break and indent as one space: a phrase is found wherever it wraps.
inline std::string unwrapped(const std::string& report) {
  std::istringstream words{report};
  std::string all;
  for (std::string word; words >> word; all += word) {
    if (!all.empty()) all += ' ';
  }
  return all;
}

inline Json parsed(const std::string& text) {
  return Document::parse(text, "stdout").json();
}

}  // namespace orrery::scenarios
