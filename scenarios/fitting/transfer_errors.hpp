#pragma once
// What the rows of one column, each left out in turn, say together.

#include <string>
#include <vector>

#include "scenarios/fitting/transfer.hpp"

namespace orrery::scenarios {

/// Errors  no row that fits use: InputError
Transfer transfer_of(const std::string& column, std::vector<TransferRow> rows);

}  // namespace orrery::scenarios
