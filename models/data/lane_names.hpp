#pragma once
// Ids of the lane of a step's input in a trace, by which predicted and recorded stages are joined.

#include <string>
#include <string_view>

namespace orrery::models {

/// "data/read"; "data/wait" is what the step waits.
inline std::string trace_input_id(std::string_view stage) {
  return "data/" + std::string{stage};
}

}  // namespace orrery::models
