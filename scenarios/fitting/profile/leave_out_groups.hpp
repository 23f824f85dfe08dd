#pragma once
// Groups rows for cross-validation: which rows are left out together.

#include <string>
#include <vector>

#include "scenarios/fitting/profile/software_rows.hpp"
#include "sim/input/csv.hpp"

namespace orrery::scenarios {

struct LeaveOutGroups {
  std::string columns;            // "model,gpu"
  std::size_t groups = 0;         // different cells
  std::vector<std::size_t> fold;  // by row: left out with all rows of the same fold
  std::size_t folds = 0;
};

/// Splits "model,gpu" into column names.
std::vector<std::string> columns_of(const std::string& words);

/// Is it a column of the table, or one that the models give: `size`, their class by parameters?
bool is_group_column(const orrery::Table& table, const std::string& column);

/// The group of a row by these columns: their cells, joined.
std::string group_of(const orrery::Table& table, const BenchRow& row,
                     const std::vector<std::string>& columns);

/// Deals whole groups in turn to at most ten folds. Without `columns`, groups are by the first of
/// model x GPU, GPU count, plan and single runs that gives at least three groups.
/// Errors  a column that is missing: InputError
LeaveOutGroups leave_out_groups(const orrery::Table& table, const std::vector<BenchRow>& rows,
                                const std::vector<std::string>& columns);

}  // namespace orrery::scenarios
