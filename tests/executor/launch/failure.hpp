#pragma once
// What tests of ranks that meet share: why a call failed, and a folder that goes with the test.

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "executor/errors.hpp"

namespace orrery::executor {

/// The sentence of a RunFailure; empty: there was none.
inline std::string failure(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunFailure& error) {
    return error.what();
  }
  return "";
}

/// Of this user alone.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace orrery::executor
