#pragma once
// A rank's measurements as text, which rank 0 reads from the store. Bytes from another process are
// not trusted: what cannot be parsed is a failure of the peer.

#include <array>
#include <string>
#include <vector>

#include "executor/run/settings.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// What one rank measured.
struct RankResult {
  Bytes peak{}, resident{}, host{};
  RoutedBytes routed{};
  std::vector<double> seconds{};    // by step
  std::vector<InputTimes> input{};  // by step
};
/// The members of InputTimes.
inline constexpr std::array<Time InputTimes::*, 4> input_parts{
    &InputTimes::read, &InputTimes::decode, &InputTimes::copy, &InputTimes::wait};

std::string packed(const RankResult& result);
/// Errors  RunFailure{peer_failed}: `rank 1 sent a result that cannot be read`
RankResult parse_result(const std::string& text, int rank, std::size_t steps);

}  // namespace orrery::executor
