#pragma once
// Collectives and messages of a fabric, all ranks at once, and files. A collective's time is that
// of its slowest rank, from when all are ready: what a plan waits for.

#include <filesystem>
#include <vector>

#include "calibrate/bench/kernels.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::calibrate {

/// One collective of all ranks of a team, fp32; `size` as nccl-tests counts it. One part.
class CollectiveSubject : public Subject {
 public:
  CollectiveSubject(models::Collective kind, Bytes size, const Ranks& ranks,
                    std::vector<executor::Fabric*> fabrics, executor::GroupId group);

  std::string name() const override;
  std::size_t parts() const override { return 1; }
  models::Collective kind() const { return kind_; }
  Bytes size() const { return size_; }
  int ranks() const { return ranks_.team.ranks(); }

  /// Errors  a sum or an order that is wrong: RunFailure
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  void call(int rank);
  void check() const;

  models::Collective kind_;
  Bytes size_;
  Ranks ranks_;
  std::vector<executor::Fabric*> fabrics_;
  executor::GroupId group_;
  std::vector<std::vector<float>> from_, to_;  // by rank
};

/// What a file takes: parts are writing it down to the disk, and reading it again.
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

/// Device memory copied to device memory: 2 bytes of traffic a byte. One part.
class CopySubject : public Subject {
 public:
  CopySubject(Bytes size, const Ranks& ranks);

  std::string name() const override { return "copy"; }
  std::size_t parts() const override { return 1; }
  Bytes traffic() const { return size_ * 2; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  Bytes size_;
  Ranks ranks_;
  std::vector<std::byte*> from_, to_;
};

}  // namespace orrery::calibrate
