#include "calibrate/bench/kernels.hpp"

#include <algorithm>

#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Operation;
using models::OpKind;

constexpr int most_layers = 4;  // operand copies of a block, used in turn

}  // namespace

std::vector<const Operation*> runnable(const models::Block& block, const executor::Device& device) {
  std::vector<const Operation*> found;
  for (const Operation& op : block.operations) {
    const bool elsewhere = op.kind == OpKind::collective || op.kind == OpKind::copy ||
                           op.queue != models::Lane::compute;
    if (!elsewhere && device.refusal(op).empty()) found.push_back(&op);
  }
  return found;
}

KernelSubject::KernelSubject(TimedBlock of, RankSet& ranks)
    : TimedSubject{ranks, models::Lane::compute, Over::mean},
      of_{std::move(of)},
      operations_{runnable(*of_.block, ranks.device(0))} {}

void KernelSubject::set_up() {
  on_.clear();
  on_.resize(static_cast<std::size_t>(ranks().ranks()));
  ranks().threads.all([&](int rank) { set_up(rank); });
  if (of_.compared) compare();
}

void KernelSubject::set_up(int rank) {
  OnRank& own = on_[static_cast<std::size_t>(rank)];
  const Bench& bench = ranks().bench(rank);
  const int wanted = bench.copies_of(footprint(*of_.block));
  const int copies = of_.alone ? wanted : std::min(most_layers, wanted);
  own.operands = std::make_unique<Operands>(bench.device(), *of_.block, copies, of_.tokens);
  own.bound.resize(static_cast<std::size_t>(copies));
  for (int copy = 0; copy < copies; ++copy) {
    for (const Operation* op : operations_) {
      own.bound[static_cast<std::size_t>(copy)].push_back(own.operands->bound(*op, copy));
    }
  }
  bench.device().finish();
}

/// Checks all GEMMs; what a GEMM wrote is restored for the operations after it.
void KernelSubject::compare() {
  executor::Device& device = ranks().device(0);
  const Operands& operands = *on_.front().operands;
  for (const Operation* op : operations_) {
    if (op->kind != OpKind::gemm && op->kind != OpKind::grouped_gemm) continue;
    check_product(device, *op, operands);
    if (operands.copies() == 1) break;
    operands.restore(*op);
  }
  device.finish();
}

void KernelSubject::enqueue(int rank, SegmentTimer& timer) {
  OnRank& own = on_[static_cast<std::size_t>(rank)];
  executor::Device& device = ranks().device(rank);
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    for (int again = 0; again < repeats(); ++again) {
      own.bound[(own.turn + static_cast<std::size_t>(again)) % own.bound.size()][i].run(device);
    }
    timer.end_segment();
  }
  own.turn += static_cast<std::size_t>(repeats());
}

void KernelSubject::tear_down() noexcept {
  on_.clear();
}

}  // namespace orrery::calibrate
