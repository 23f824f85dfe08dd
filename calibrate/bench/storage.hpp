#pragma once
// Times writing and reading files on a folder's storage.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

/// Writes one file sequentially and reads it, in order and in small pieces at random places. Parts:
/// writing it, flushed to disk; reading it; `random_reads` reads of `random_bytes`, one at a time.
class StorageSubject : public Subject {
 public:
  StorageSubject(std::filesystem::path folder, Bytes size, Clock& clock);

  std::string name() const override { return "storage"; }
  std::size_t parts() const override { return 3; }
  static constexpr int random_reads = 64;
  static constexpr std::size_t random_bytes = 4096;
  Bytes size() const { return size_; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  std::filesystem::path file_;
  Bytes size_;
  Clock& clock_;
  std::vector<char> block_;
  std::uint64_t place_ = 1;  // of random reads
};

}  // namespace orrery::calibrate
