#include "tests/arrows/type_names.hpp"

#include <fstream>
#include <map>
#include <regex>
#include <set>

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// Where types of one name are declared: files by subfolder.
using Places = std::map<std::string, std::set<std::string>>;

std::string subfolder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  auto part = folder.begin();
  std::string subfolder = part->string();
  if (++part != folder.end()) subfolder += "/" + part->string();
  return subfolder;
}

void read_types(const fs::path& root, const fs::path& path, std::map<std::string, Places>& types) {
  static const std::regex declaration{
      R"(^\s*(?:template\s*<.*>\s*)?(?:class|struct|union|enum(?: class)?)\s+([A-Z]\w*)\s*(?:final\s*)?(?::[^:;]*)?(?:\{|$))"};
  std::ifstream file{root / path};
  std::string line;
  std::smatch match;
  while (std::getline(file, line)) {
    if (!std::regex_search(line, match, declaration)) continue;
    types[match[1]][subfolder_of(path)].insert(path.generic_string());
  }
}

}  // namespace

std::vector<std::string> shared_type_names(const fs::path& root) {
  static const std::set<std::string> sources = {".cpp", ".hpp", ".cu", ".cuh"};
  std::map<std::string, Places> types;
  for (const char* folder :
       {"sim", "hardware", "models", "scenarios", "executor", "calibrate", "python"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator{root / folder}) {
      if (sources.count(entry.path().extension().string()) == 0) continue;
      read_types(root, entry.path().lexically_relative(root), types);
    }
  }
  std::vector<std::string> shared;
  for (const auto& [name, places] : types) {
    if (places.size() < 2) continue;
    std::string text = name + ":";
    for (const auto& [subfolder, files] : places) {
      for (const std::string& file : files) text += (text.back() == ':' ? " " : ", ") + file;
    }
    shared.push_back(text);
  }
  return shared;
}

}  // namespace orrery
