#include "scenarios/version.hpp"

#include "hardware/embedded.hpp"
#include "models/embedded.hpp"
#include "scenarios/embedded.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

const std::string& catalogue_hash() {
  static const std::string found = [] {
    TextHash hash;
    for (const auto& files :
         {hardware::embedded_files(), models::embedded_files(), scenarios::embedded_files()}) {
      for (const EmbeddedFile& file : files) {
        hash.add(file.path);
        hash.add(file.text);
      }
    }
    return hash.text();
  }();
  return found;
}

Json made_with() {
  return {{"version", version_number},
          {"commit", commit().empty() ? Json(nullptr) : Json(commit())},
          {"catalogue", catalogue_hash()}};
}

}  // namespace orrery::scenarios
