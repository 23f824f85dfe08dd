#include "executor/session/process_limits.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include "executor/errors.hpp"
#include "executor/session/execution_json.hpp"

namespace orrery::executor {

namespace {

// Descriptors beyond those that are open at the start. Rank 0 has most: three connections for each
// rank (its store's, its watchdog's, its own to it), the listeners and event queues of the store
// and the fabric; files of a log, a checkpoint and its folder.
// Source  /proc/PID/fd of runs of 2, 4 and 8 ranks (14, 20 and 32), and files opened now and then;
//         runs of 2 and 4 ranks work with 16 and 23 beyond the start, and not with fewer
constexpr std::int64_t descriptors_of_a_rank = 3, other_descriptors = 11;
constexpr std::int64_t descriptors_of_metrics = 65;  // the listener and its readers

// Addresses beyond those that are mapped at the start: OpenBLAS and its buffer, arenas of malloc
// and stacks of threads; and for each further rank in the same process. Source  ulimit -v with a
// model of 3 MB, OpenBLAS 0.3.21 and glibc 2.36, started from 80 MiB: one
//         rank works with 410 MiB and spins with 391; two threads work with 684 and fail with 586
constexpr Bytes mapped_by_a_question = 83_MiB;  // once it has been read
constexpr Bytes addresses_of_a_rank = 340_MiB, addresses_of_a_further_rank = 280_MiB;

std::optional<std::int64_t> limit_of(__rlimit_resource resource) {
  rlimit found{};
  if (::getrlimit(resource, &found) != 0 || found.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<std::int64_t>(found.rlim_cur);
}

/// Descriptors open now; those of the usual streams where that cannot be found out.
std::int64_t open_descriptors() {
  std::error_code unknown;
  std::int64_t count = -1;  // the listing's own
  std::filesystem::directory_iterator each{"/proc/self/fd", unknown};
  for (; !unknown && each != std::filesystem::directory_iterator{}; each.increment(unknown)) {
    ++count;
  }
  return std::max<std::int64_t>(3, count);
}

/// Addresses mapped now. Source  proc(5), statm: the first number is pages of the whole program
Bytes mapped() {
  std::int64_t pages = 0;
  std::ifstream{"/proc/self/statm"} >> pages;
  return Bytes{pages * ::sysconf(_SC_PAGE_SIZE)};
}

std::int64_t in_mib(Bytes bytes) {
  return (bytes.count() + (1 << 20) - 1) >> 20;
}

void require_addresses(Bytes more) {
  const Bytes needed = std::max(mapped(), mapped_by_a_question) + addresses_of_a_rank + more;
  const auto most = limit_of(RLIMIT_AS);
  if (!most || Bytes{*most} >= needed) return;
  throw RunFailure{Exit::local_failure,
                   fmt::format("this process may map {} MiB (ulimit -v): expected {} MiB or more",
                               *most >> 20, in_mib(needed))};
}

}  // namespace

void require_addresses() {
  require_addresses(Bytes{});
}

void require_limits(const models::Question& question, const SessionOptions& options,
                    std::int64_t threads) {
  const std::int64_t ranks = question.plan.gpus();
  const std::int64_t files = open_descriptors() + other_descriptors +
                             descriptors_of_a_rank * ranks +
                             (options.metrics_port ? descriptors_of_metrics : 0);
  if (const auto most = limit_of(RLIMIT_NOFILE); most && *most < files) {
    throw RunFailure{Exit::local_failure,
                     fmt::format("this process may have {} files open (ulimit -n): expected {} or "
                                 "more for {} {}",
                                 *most, files, ranks, ranks == 1 ? "rank" : "ranks")};
  }
  if (!limit_of(RLIMIT_AS)) return;
  const Bytes buffers = predicted_peak(models::predict(question));
  require_addresses(addresses_of_a_further_rank * (threads - 1) + buffers * threads);
}

}  // namespace orrery::executor
