// What a run left behind: traces of PyTorch's profiler, logs of steps. Whatever is read has finite
// times, and its shares of a step add up.
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <string>

#include "scenarios/runback/profiled_rank.hpp"
#include "scenarios/runback/run_log.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::scenarios {
namespace {

/// The bytes as a file of this process, as both readers take paths.
const std::string& written_run(const std::uint8_t* data, std::size_t size) {
  static const std::string path = "/tmp/orrery-run-fuzz-" + std::to_string(getpid());
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || std::fwrite(data, 1, size, file) != size) std::abort();
  std::fclose(file);
  return path;
}

void check(const ProfiledRank& rank) {
  for (const double each : rank.step_seconds()) {
    if (!std::isfinite(each) || each <= 0) std::abort();
  }
  if (rank.wall().sum() < Time{} || rank.busy().sum() < Time{}) std::abort();
}

void check(const RunLog& log) {
  for (const double each : log.step_seconds(nullptr)) {
    if (!std::isfinite(each) || each <= 0) std::abort();
  }
  if (!std::isfinite(statistics_of(log.step_seconds(nullptr)).median)) std::abort();
}

}  // namespace
}  // namespace orrery::scenarios

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string& path = scenarios::written_run(data, size);
  const bool profile = scenarios::is_profile(text_of(data, size));
  survives([&] {
    if (profile)
      scenarios::check(scenarios::read_profiled_rank(path, {}));
    else
      scenarios::check(scenarios::read_run_log(path));
  });
  std::remove(path.c_str());
  return 0;
}
