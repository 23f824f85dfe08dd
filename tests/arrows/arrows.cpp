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

/// Subfolders of three of the folders, and which others of the same folder each may include. What
/// lies in no subfolder (models/embedded.hpp, executor/errors.hpp) includes no subfolder and is
/// open to all.
const std::map<std::string, std::set<std::string>>& subfolders() {
  static const std::map<std::string, std::set<std::string>> table = {
      {"models/model", {}},
      {"models/plan", {"model", "schedules", "program"}},
      {"models/program", {"model"}},
      {"models/schedules", {"program"}},
      {"models/software", {"model", "plan"}},
      {"models/operations", {"model", "plan", "program", "schedules", "software"}},
      {"models/lowering", {"model", "plan", "program", "schedules", "software", "operations"}},
      {"models/network", {"program"}},
      {"models/evaluation", {"program", "network"}},
      {"models/pricing", {"program", "software", "network", "evaluation"}},
      {"models/data", {"plan"}},
      {"models/prediction",
       {"model", "plan", "program", "schedules", "software", "operations", "lowering", "network",
        "evaluation", "pricing", "data"}},
      {"executor/device", {}},
      {"executor/launch", {}},
      {"executor/layout", {"device"}},
      {"executor/fabric", {"device", "launch"}},
      {"executor/run", {"device", "fabric", "layout"}},
      {"executor/checkpoint", {"device", "layout", "run"}},
      {"executor/module", {"device", "fabric", "launch"}},
      {"executor/pretrained", {"device", "layout", "run"}},
      {"executor/session",
       {"device", "fabric", "launch", "layout", "run", "checkpoint", "module", "pretrained"}},
      {"scenarios/drawing", {}},
      {"scenarios/exchange", {}},
      {"scenarios/scenario", {"exchange"}},
      {"scenarios/report", {"scenario", "drawing"}},
      {"scenarios/search", {"exchange", "scenario", "report", "drawing"}},
      {"scenarios/topology", {"report", "drawing"}},
      {"scenarios/collective", {"scenario", "report", "search"}},
      {"scenarios/comparison", {"report"}},
      {"scenarios/contention", {"scenario", "report", "drawing", "search"}},
      {"scenarios/whatif", {"scenario", "report", "drawing", "search"}},
      {"scenarios/scaling", {"scenario", "report", "drawing", "search"}},
      {"scenarios/whole_run", {"scenario", "report", "drawing", "search"}},
      {"scenarios/purchase", {"scenario", "report", "drawing", "search", "topology", "whole_run"}},
      {"scenarios/claims", {"scenario", "report", "whole_run"}},
      {"scenarios/validation", {"scenario", "report", "drawing", "search", "whole_run"}},
      {"scenarios/fitting", {"search", "validation"}},
      {"scenarios/runback", {"report", "whatif", "fitting"}},
      {"scenarios/page", {"scenario", "report", "drawing", "whatif", "runback"}},
      {"scenarios/schema", {"exchange", "report", "search", "claims"}},
      {"scenarios/question",
       {"exchange", "scenario", "search", "scaling", "purchase", "validation", "fitting",
        "whole_run"}},
  };
  return table;
}

/// "models/plan" of "models/plan/plan.hpp"; empty for what lies in no subfolder.
std::string subfolder_of(const std::string& path) {
  const std::size_t first = path.find('/');
  const std::size_t second = path.find('/', first + 1);
  if (first == std::string::npos || second == std::string::npos) return {};
  const std::string subfolder = path.substr(0, second);
  const std::string folder = path.substr(0, first);
  const bool divided = folder == "models" || folder == "executor" || folder == "scenarios";
  return divided ? subfolder : std::string{};
}

/// What is wrong with an include from one subfolder into another of the same folder. The command
/// may include all, and none may include it.
std::string subfolder_problem(const std::string& path, const std::string& included) {
  const std::string from = subfolder_of(path), to = subfolder_of(included);
  const std::string folder = included.substr(0, included.find('/'));
  if (path.rfind("scenarios/command/", 0) == 0) return {};
  if (to.empty() || from == to || path.rfind(folder + "/", 0) != 0) return {};
  const auto known = subfolders().find(from);
  const std::string name = to.substr(folder.size() + 1);
  if (known != subfolders().end() && known->second.count(name) > 0) return {};
  return (from.empty() ? "what lies in no subfolder" : from + "/") + " may not include " + to + "/";
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
std::string problem(const std::string& path, const std::string& line, const Rights& rights) {
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
    const std::string wrong_subfolder = subfolder_problem(path, included);
    if (!wrong_subfolder.empty()) return wrong_subfolder;
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
    const std::string wrong =
        problem(path.generic_string(), line.substr(0, line.find("//")), rights);
    if (wrong.empty()) continue;
    broken.push_back(path.generic_string() + ":" + std::to_string(number) + ": " + wrong);
  }
}

/// Does `from` reach `to` by one include or several?
bool reaches(const std::string& from, const std::string& to, std::set<std::string>& seen) {
  const std::string folder = from.substr(0, from.find('/') + 1);
  for (const std::string& next : subfolders().at(from)) {
    if (folder + next == to) return true;
    if (seen.insert(next).second && reaches(folder + next, to, seen)) return true;
  }
  return false;
}

}  // namespace

std::string subfolder_cycle() {
  for (const auto& [subfolder, others] : subfolders()) {
    std::set<std::string> seen;
    if (reaches(subfolder, subfolder, seen)) return subfolder;
  }
  return {};
}

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
