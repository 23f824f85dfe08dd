#pragma once
// A flag that is given once for each of its values: `--by gpu --by model`.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "sim/errors.hpp"

namespace orrery::scenarios {

/// One value after each flag. The help says so: CLI11 prints `...` for an option without bounds,
/// which reads as if values could follow each other.
inline CLI::Option& repeated(CLI::Option& option) {
  constexpr int most = CLI::detail::expected_max_vector_size - 1;
  return *option.take_all()->allow_extra_args(false)->expected(1, most);
}

/// The error for a second value after one `--set`.
inline InputError second_change(const std::string& change) {
  return {"--set", fmt::format("expected one POINTER=VALUE, found a second, '{}'; repeat the flag: "
                               "--set {}",
                               change, change)};
}

}  // namespace orrery::scenarios
