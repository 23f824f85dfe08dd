#pragma once
// What a user allows NCCL, as its environment says it, and its tuner's choice among that:
// NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS (also NCCL_MAX_CTAS). Source  NCCL 2.30.7,
// docs/userguide/source/env.rst: lists by function since 2.24; a function of
//         which nothing is left fails, since then without falling back to Ring

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models {

/// Of one collective, or of all that no other list names.
template <class Value>
struct NcclList {
  std::optional<Collective> of;
  std::vector<Value> allowed;
};

struct NcclSettings {
  std::vector<NcclList<std::string_view>> algorithms{};  // names of builtin_algorithms
  std::vector<NcclList<Protocol>> protocols{};
  std::optional<int> channels{};
  std::string place{};  // where they were written, for errors: "--env", "/collectives"

  /// Is anything fixed that the tuner would choose by itself?
  bool any() const { return !algorithms.empty() || !protocols.empty() || channels; }
  bool restricts(Collective collective) const;
  bool allows(Collective collective, std::string_view algorithm, Protocol protocol) const;
};

/// One variable into `settings`.
/// value   "Ring,Tree", "^LL128" (all others), "allreduce:tree,ring;broadcast:ring"
/// Errors  a name or value that is not known: InputError at the settings' place
void read_nccl_variable(std::string_view name, std::string_view value, NcclSettings& settings);

/// What NCCL's tuner, so restricted, runs: with it `price` is asked. What it does not tune (all-to-
/// alls, messages) stays as it was chosen, on no more channels than allowed.
/// Errors  nothing that is allowed runs here: InputError at the settings' place
CollectiveChoice tuned_choice(Collective collective, Bytes size, const GroupShape& group,
                              const hardware::Cluster& cluster, const CollectivePricing& pricing);

}  // namespace orrery::models
