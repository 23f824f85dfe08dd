#include "executor/launch/process_name.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>

#include "executor/launch/spawn.hpp"

namespace orrery::executor {

namespace {

/// The memory in which the kernel finds the arguments of this process.
struct ArgumentMemory {
  char* begin = nullptr;
  std::size_t size = 0;
};

/// Source  proc(5): arg_start and arg_end are fields 48 and 49 of /proc/self/stat; the second
///         field, a name in brackets, may hold blanks
ArgumentMemory argument_memory() {
  std::ifstream file{"/proc/self/stat"};
  std::string skipped;
  std::getline(file, skipped, ')');
  constexpr int first = 48;
  for (int field = 3; field < first; ++field) file >> skipped;
  std::uintptr_t begin = 0, end = 0;
  if (!(file >> begin >> end) || begin == 0 || end <= begin) return {};
  return {reinterpret_cast<char*>(begin), end - begin};
}

}  // namespace

void name_thread(int rank) {
  constexpr std::size_t longest = 15;
  std::string name = fmt::format("orrery rank {}", rank);
  if (name.size() > longest) name = fmt::format("orrery r{}", rank);
  ::prctl(PR_SET_NAME, name.c_str());
}

void name_process(int rank) {
  name_thread(rank);
  const ArgumentMemory memory = argument_memory();
  if (memory.begin == nullptr) return;
  std::string words = fmt::format("orrery rank {}", rank) + '\0';
  for (const std::string& each : own_arguments()) words += each + '\0';
  // The last byte stays zero: else the kernel would read on into the environment.
  words.resize(memory.size, '\0');
  words.back() = '\0';
  std::memcpy(memory.begin, words.data(), words.size());
}

}  // namespace orrery::executor
