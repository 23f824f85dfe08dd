#pragma once
// Sums of several buffers, for the CPU's fabrics: in the order given, so that the result is the
// same on every rank and in every run. 16-bit numbers are added in fp32 and rounded once.

#include <cstddef>
#include <span>

#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

/// to[i] = from[0][i] + from[1][i] + ...; `to` may be one of them.
/// Errors  Element::byte: ContractError
void sum_in_order(Element element, std::span<const std::byte* const> from, std::byte* to,
                  std::int64_t count);

}  // namespace orrery::executor
