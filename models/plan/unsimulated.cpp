#include "models/plan/fields.hpp"

namespace orrery::models {

/// None at present: a row here refuses a key by name instead of as unknown.
std::span<const UnsimulatedField> unsimulated_fields() {
  return {};
}

}  // namespace orrery::models
