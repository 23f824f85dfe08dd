#pragma once
// Times writing and reading files on a folder's storage.

#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

/// Writes one file sequentially and reads it. Parts: writing it, flushed to disk, and reading it.
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
