// Where the loader looks for what our programs and modules need. An empty element of a run path is
// the current folder, in which anyone may have put a library.

#include <array>
#include <cstdio>
#include <cstring>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

namespace fs = std::filesystem;

/// Is it a program or a shared library?
bool is_loaded_by_the_system(const fs::path& path) {
  std::array<char, 18> head{};
  std::ifstream{path, std::ios::binary}.read(head.data(), head.size());
  const int type = head[16];  // e_type, little-endian: 2 a program, 3 position independent
  return std::memcmp(head.data(), "\177ELF", 4) == 0 && (type == 2 || type == 3);
}

std::vector<fs::path> built() {
  std::vector<fs::path> found;
  fs::recursive_directory_iterator each{fs::path{ORRERY_COMMAND}.parent_path()};
  for (; each != fs::recursive_directory_iterator{}; ++each) {
    if (each->path().filename() == "CMakeFiles") each.disable_recursion_pending();
    if (each->is_regular_file() && is_loaded_by_the_system(*each)) found.push_back(each->path());
  }
  return found;
}

/// What binutils' readelf, which comes with the compiler, says of RPATH and RUNPATH.
std::vector<std::string> run_path(const fs::path& file) {
  const Scratch scratch;
  const std::string line = "readelf -d '" + file.string() + "' >" + scratch.path("dynamic");
  REQUIRE(std::system(line.c_str()) == 0);
  std::vector<std::string> elements;
  std::istringstream lines{scratch.read("dynamic")};
  for (std::string each; std::getline(lines, each);) {
    const std::size_t open = each.find('['), close = each.rfind(']');
    if (each.find("PATH)") == std::string::npos || close == std::string::npos) continue;
    std::string path = each.substr(open + 1, close - open - 1) + ":";
    for (std::size_t colon = 0; (colon = path.find(':')) != std::string::npos;) {
      elements.push_back(path.substr(0, colon));
      path.erase(0, colon + 1);
    }
  }
  return elements;
}

}  // namespace

TEST_CASE("Nothing that was built searches a folder that is not named in full") {
  const std::vector<fs::path> files = built();
  CHECK(std::find(files.begin(), files.end(), fs::path{ORRERY_COMMAND}) != files.end());
  CHECK(files.size() >= 3);  // the command, this program, the stand-in
  for (const fs::path& file : files) {
    for (const std::string& element : run_path(file)) {
      INFO(file << " searches '" << element << "'");
      CHECK(fs::path{element}.is_absolute());
    }
  }
}

TEST_CASE("A library that lies in the current folder is not loaded") {
  const Scratch scratch;
  for (const char* name :
       {"libfmt.so.9", "libopenblas.so.0", "libstdc++.so.6", "libsodium.so.23"}) {
    scratch.write(name, "no library: the loader would say so and give up");
  }
  const std::string line = "cd " + scratch.path("") + " && " ORRERY_COMMAND " --version >" +
                           scratch.path("out") + " 2>&1";
  CHECK(std::system(line.c_str()) == 0);
  INFO(scratch.read("out"));
  CHECK(scratch.read("out").find("orrery ") == 0);
}

}  // namespace orrery::scenarios
