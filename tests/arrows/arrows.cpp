#include "tests/arrows/arrows.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// The folders and which others each may include.
const std::map<std::string, std::set<std::string>>& arrows() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"sim", {}},
      {"hardware", {"sim"}},
      {"models", {"sim", "hardware"}},
      {"scenarios", {"sim", "hardware", "models"}},
      {"executor", {"sim", "hardware", "models"}},
      {"calibrate", {"sim", "hardware", "models", "executor"}},
      {"python", {"sim", "hardware", "models", "scenarios", "executor", "calibrate"}},
  };
  return table;
}

/// A finished Program says all that its consumers need: none of these asks the plan that it was
/// lowered from, or the lowering.
bool reads_programs(const fs::path& path) {
  static const std::vector<std::string> readers = {
      "models/program/", "models/evaluation/", "models/network/", "models/pricing/",
      "executor/run/",   "executor/layout/",   "executor/device/"};
  const std::string name = path.generic_string();
  return std::any_of(readers.begin(), readers.end(),
                     [&](const std::string& each) { return name.rfind(each, 0) == 0; });
}

bool makes_programs(const std::string& included) {
  return included.rfind("models/plan/", 0) == 0 || included.rfind("models/lowering/", 0) == 0;
}

/// What a file may do by where it lies.
struct Rights {
  std::set<std::string> folders;
  bool cuda = false;
  bool print = false;
  bool plans = true;  // may ask how a Program was made
};

Rights rights_of(const fs::path& path) {
  const std::string folder = path.begin()->string();
  Rights rights{arrows().at(folder), folder == "executor" || folder == "calibrate", false};
  rights.folders.insert(folder);
  rights.plans = !reads_programs(path);
  if (path.generic_string().rfind("scenarios/command/", 0) == 0) {
    for (const auto& entry : arrows()) rights.folders.insert(entry.first);
    rights.print = true;
  }
  return rights;
}

/// What is wrong with a line of a file with these rights; empty if nothing is.
std::string problem(const std::string& line, const Rights& rights) {
  static const std::regex quoted{R"(^\s*#\s*include\s*"([^"]*)\")"};
  static const std::regex cuda{R"(^\s*#\s*include\s*[<"](cuda|cublas|cudnn|nccl|nvml|cupti|nvtx))"};
  static const std::regex prints{
      R"(std::(cout|cerr|clog|exit|abort|quick_exit)\b|\b(printf|puts|fmt::print|_exit)\s*\()"};
  std::smatch match;
  if (!rights.cuda && std::regex_search(line, cuda)) return "CUDA outside calibrate/ and executor/";
  if (std::regex_search(line, match, quoted)) {
    const std::string included = match[1];
    const std::string folder = included.substr(0, included.find('/'));
    if (arrows().count(folder) == 0)
      return "includes \"" + included + "\", not written from the root";
    if (rights.folders.count(folder) == 0) return "may not include " + folder + "/";
    if (!rights.plans && makes_programs(included)) {
      return "reads finished Programs, and may not include \"" + included + "\"";
    }
  }
  if (!rights.print && std::regex_search(line, match, prints)) {
    return "a library neither prints nor exits: " + match.str();
  }
  return {};
}

void check_file(const fs::path& root, const fs::path& path, std::vector<std::string>& broken) {
  const Rights rights = rights_of(path);
  std::ifstream file{root / path};
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string wrong = problem(line.substr(0, line.find("//")), rights);
    if (wrong.empty()) continue;
    broken.push_back(path.generic_string() + ":" + std::to_string(number) + ": " + wrong);
  }
}

}  // namespace

std::vector<std::string> broken_rules(const fs::path& root) {
  static const std::set<std::string> sources = {".cpp", ".hpp", ".cu", ".cuh"};
  std::vector<fs::path> paths;
  for (const auto& entry : arrows()) {
    if (!fs::exists(root / entry.first)) continue;
    for (const auto& file : fs::recursive_directory_iterator{root / entry.first}) {
      if (sources.count(file.path().extension().string()) == 0) continue;
      paths.push_back(file.path().lexically_relative(root));
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> broken;
  for (const fs::path& path : paths) check_file(root, path, broken);
  return broken;
}

}  // namespace orrery
