// Compiled alone for every commit, so it includes next to nothing.

#include <string_view>

namespace orrery::scenarios {

std::string_view commit();  // scenarios/version.hpp

std::string_view commit() {
  return ORRERY_COMMIT;
}

}  // namespace orrery::scenarios
