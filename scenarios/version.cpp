#include "scenarios/version.hpp"

#include <string_view>

namespace orrery::scenarios {

Json made_with() {
  constexpr std::string_view commit = ORRERY_COMMIT;
  return {{"version", version_number},
          {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
          {"catalogue", catalogue_hash()}};
}

}  // namespace orrery::scenarios
