#include "models/plan/fields.hpp"

namespace orrery::models {

/// None at present. A row here refuses a key by name rather than as unknown.
std::span<const UnsimulatedField> unsimulated_fields() {
  return {};
}

}  // namespace orrery::models
