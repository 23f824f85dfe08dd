#pragma once
// The environment variables that restrict NCCL's choice, and its tuner's choice among what is left:
// NCCL_ALGO, NCCL_PROTO, NCCL_MAX_NCHANNELS (also NCCL_MAX_CTAS).
// Source  NCCL 2.30.7, docs/userguide/source/env.rst: lists by function since 2.24; a function for
//         which nothing is left fails, since then without falling back to Ring

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/collectives/collective.hpp"

namespace orrery::models {

/// A list of allowed values, for one collective or (without one) for all that no other list names.
template <class Value>
struct NcclList {
  std::optional<Collective> of;
  std::vector<Value> allowed;
};

/// All restrictions.
struct NcclSettings {
  std::vector<NcclList<std::string_view>> algorithms{};  // names of builtin_algorithms
  std::vector<NcclList<Protocol>> protocols{};
  std::optional<int> channels{};
  std::string place{};  // where the user wrote them, for errors: "--env", "/collectives"

  /// Is anything restricted?
  bool any() const { return !algorithms.empty() || !protocols.empty() || channels; }
  bool restricts(Collective collective) const;
  bool allows(Collective collective, std::string_view algorithm, Protocol protocol) const;
};

/// Reads one variable into `settings`.
/// value   "Ring,Tree", "^LL128" (all others), "allreduce:tree,ring;broadcast:ring"
/// Errors  a name or value that is not known: InputError at the settings' place
void read_nccl_variable(std::string_view name, std::string_view value, NcclSettings& settings);

/// The algorithm and protocol that NCCL's tuner takes under these restrictions, for `price`. For
/// collectives that it does not tune (all-to-alls, messages) the caller's choice is returned, with
/// the limit of channels.
/// Errors  nothing that is allowed can run here: InputError at the settings' place
CollectiveChoice tuned_choice(Collective collective, Bytes size, const GroupShape& group,
                              const hardware::Cluster& cluster, const CollectivePricing& pricing);

}  // namespace orrery::models
