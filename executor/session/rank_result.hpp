#pragma once
// What a rank measured, as it travels to rank 0 through the store. What comes from another process
// may be anything: what cannot be read is a peer's failure.

#include <string>
#include <vector>

#include "executor/run/settings.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

struct RankResult {
  Bytes peak{}, resident{}, host{};
  RoutedBytes routed{};
  std::vector<double> seconds{};  // by step
};

std::string packed(const RankResult& result);
/// Errors  RunFailure{peer_failed}: `rank 1 sent a result that cannot be read`
RankResult parse_result(const std::string& text, int rank, std::size_t steps);

}  // namespace orrery::executor
