#pragma once
// What a user allows NCCL, as its environment says it: NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS
// (also NCCL_MAX_CTAS).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::scenarios {

struct NcclEnvironment {
  std::vector<std::string_view> algorithms{};  // of the table; empty: all
  std::vector<models::Protocol> protocols{};   // empty: all
  std::optional<int> channels{};

  bool allows(std::string_view algorithm, models::Protocol protocol) const;
};

/// settings  "NCCL_ALGO=Ring,Tree", "NCCL_PROTO=^LL128": a list, or what is excluded
/// Errors    a name or a value that is not known, a name twice: InputError at --env
NcclEnvironment read_nccl_environment(const std::vector<std::string>& settings);

}  // namespace orrery::scenarios
