#pragma once
// Files on the storage that a folder lies on.

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

/// Parts are writing a file down to the disk, and reading it again.
class StorageSubject : public Subject {
 public:
  StorageSubject(std::filesystem::path folder, Bytes size, Clock& clock);

  std::string name() const override { return "storage"; }
  std::size_t parts() const override { return 2; }
  Bytes size() const { return size_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  std::filesystem::path file_;
  Bytes size_;
  Clock& clock_;
  std::vector<char> block_;
};

}  // namespace orrery::calibrate
