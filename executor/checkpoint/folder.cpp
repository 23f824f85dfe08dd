#include "executor/checkpoint/folder.hpp"

#include <fmt/format.h>

#include <filesystem>

namespace orrery::executor {

RunFailure unreadable(const std::string& path, std::error_code reason) {
  return {Exit::output_failed, fmt::format("{}: cannot be read: {}", path, reason.message())};
}

bool is_there(const std::string& path) {
  std::error_code failed;
  const auto found = std::filesystem::status(path, failed).type();
  if (found == std::filesystem::file_type::not_found) return false;
  if (failed) throw unreadable(path, failed);
  return true;
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  std::filesystem::directory_iterator each{folder, failed};
  for (; !failed && each != std::filesystem::directory_iterator{}; each.increment(failed)) {
    names.push_back(each->path().filename().string());
  }
  if (failed && failed != std::errc::no_such_file_or_directory) throw unreadable(folder, failed);
  return names;
}

}  // namespace orrery::executor
