#pragma once
// A block's operations, one after another on every rank of a team: each is timed in the company
// that it keeps in a training step, with the operands that the operation before it left behind and
// weights that were last touched some layers ago.

#include <memory>
#include <vector>

#include "calibrate/bench/team.hpp"
#include "calibrate/harness/harness.hpp"
#include "executor/device/device.hpp"

namespace orrery::calibrate {

/// What ranks share to be timed together. `devices` has one for each rank of the team.
struct Ranks {
  Team& team;
  Gate& gate;
  std::vector<executor::Device*> devices;
  Clock& clock;
  int cores = 1;  // of the machine: ranks beyond them take them from each other
};

/// Parts are the block's operations but collectives and copies, which it leaves out. A part's time
/// is the mean over the ranks, which all run the block at once. While there is a core for every
/// rank, what others took of a part is left out: then its processor time is less than its time.
class BlockSubject : public Subject {
 public:
  /// Block and model outlive the subject.
  BlockSubject(std::string name, const models::Block& block, const models::Model& model,
               const Ranks& ranks);
  ~BlockSubject() override;

  std::string name() const override { return name_; }
  std::size_t parts() const override { return operations_.size(); }
  const std::vector<const models::Operation*>& operations() const { return operations_; }
  const models::Block& block() const { return block_; }

  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  struct Copy;  // the operands of one layer on one rank
  void run_rank(int rank, std::vector<Time>& times);
  void check_products(int rank);

  std::string name_;
  const models::Block& block_;
  const models::Model& model_;
  Ranks ranks_;
  std::vector<const models::Operation*> operations_;
  std::vector<std::vector<std::unique_ptr<Copy>>> copies_;  // by rank, by layer
  std::size_t turn_ = 0;
};

}  // namespace orrery::calibrate
