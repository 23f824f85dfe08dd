#pragma once
// The fabrics that a calibration measures: those of ranks on one host, as `orrery execute` starts
// them.

#include <memory>
#include <string>
#include <vector>

#include "executor/fabric/fabric.hpp"

namespace orrery::scenarios {

class CalibrationWorlds {
 public:
  /// "tcp" or "threads". Errors  another name: InputError
  explicit CalibrationWorlds(const std::string& fabric);
  ~CalibrationWorlds();

  /// One fabric for each of so many ranks, which end before this does.
  /// Errors  no connection: RunFailure
  std::vector<std::unique_ptr<executor::Fabric>> make(int ranks);

 private:
  struct World;
  bool tcp_;
  std::vector<std::unique_ptr<World>> worlds_;
};

}  // namespace orrery::scenarios
