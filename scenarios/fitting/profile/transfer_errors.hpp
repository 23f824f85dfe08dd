#pragma once
// Summarises the rows of one column, each left out in turn.

#include <string>
#include <vector>

#include "scenarios/fitting/profile/transfer.hpp"

namespace orrery::scenarios {

/// Errors  only rows that fits do not use: InputError
Transfer transfer_of(const std::string& column, std::vector<TransferRow> rows);

}  // namespace orrery::scenarios
