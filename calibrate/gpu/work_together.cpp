#include "calibrate/gpu/work_together.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery::calibrate {

namespace {

constexpr int products_in_a_round = 32;
constexpr Bytes copy_beside = 256_MiB;

/// One operation, which goes around its operands.
class ProductPiece {
 public:
  ProductPiece(const TimedBlock& of, executor::Device& device, int copies)
      : of_{of}, operands_{device, *of.block, copies, of.model->vocab} {
    device.finish();
  }
  void enqueue() {
    operands_.run(of_.block->operations.front(), turn_++ % operands_.copies(), *of_.model);
  }
  Piece piece() {
    return {.queue = models::Lane::compute, .enqueue = [this] { enqueue(); }};
  }

 private:
  const TimedBlock& of_;
  Operands operands_;
  int turn_ = 0;
};

/// So many bytes twice.
models::Block two_blocks_of(Bytes size) {
  models::Block memory;
  memory.operands.resize(2);
  for (models::Operand& each : memory.operands) {
    each.dtype = models::DType::fp32;
    each.shape = {1, 1, size.count() / 4};
  }
  return memory;
}

}  // namespace

Time time_under_load(const TimedBlock& product, QueueBench& bench, Time span) {
  executor::Device& device = bench.device();
  ProductPiece work{product, device, bench.copies_of(footprint(*product.block))};
  std::vector<Time> rounds;
  bench.overseer().forget();
  const Time end = bench.clock().now() + span;
  do {
    const executor::Mark begin = device.mark(models::Lane::compute);
    for (int i = 0; i < products_in_a_round; ++i) work.enqueue();
    const executor::Mark last = device.mark(models::Lane::compute);
    device.finish();
    rounds.push_back(Time{bench.between(begin, last).count() / products_in_a_round});
    device.forget_marks();
  } while (bench.clock().now() < end || rounds.size() < 4);
  const auto third = static_cast<std::ptrdiff_t>((rounds.size() + 2) / 3);
  return std::max(Time{1}, quantile({rounds.end() - third, rounds.end()}, 0.5));
}

NamedBeside beside_product(const TimedBlock& product, executor::Device& device, std::string what,
                           const Piece& other) {
  ProductPiece work{product, device, 2};
  const BesideCounts counts = counts_for(device, work.piece(), other, span_beside);
  return {product.name, std::move(what), measure_beside(device, work.piece(), other, counts)};
}

NamedBeside beside_copy(const TimedBlock& product, QueueBench& bench) {
  executor::Device& device = bench.device();
  const Bytes size = std::min(copy_beside, bench.sizes().run_up);
  const Operands copied{device, two_blocks_of(size), 1, 1};
  device.finish();
  const Piece copy{.queue = models::Lane::copy, .enqueue = [&] {
                     device.copy(copied.view(0, 0).data, copied.view(0, 1).data, size,
                                 models::Lane::copy);
                   }};
  return beside_product(product, device, fmt::format("copy on the device {} B", size.count()),
                        copy);
}

NamedBeside beside_all_reduce(const TimedBlock& product, GpuCrew& crew, Bytes asked) {
  const Bytes size = cut_evenly(asked, crew.team.ranks());
  QueueCollective collective{models::Collective::all_reduce, size, crew};
  collective.prepare();
  BesideCounts counts;
  const auto on_all = [&](const auto& work) {
    crew.team.all([&](int rank) {
      executor::Device& device = *crew.members[static_cast<std::size_t>(rank)].device;
      ProductPiece own{product, device, 2};
      work(rank, device, own.piece(), Piece{.queue = models::Lane::data, .enqueue = [&, rank] {
                                              collective.call(rank, size);
                                            }});
      device.finish();
    });
  };
  // All ranks call alike: one of them says how often.
  on_all([&](int rank, executor::Device& device, const Piece& work, const Piece& message) {
    const BesideCounts own = counts_for(device, work, message, span_beside);
    if (rank == 0) counts = own;
  });
  Beside times;
  on_all([&](int rank, executor::Device& device, const Piece& work, const Piece& message) {
    const Beside own = measure_beside(device, work, message, counts);
    if (rank == 0) times = own;
  });
  collective.finish();
  return {product.name, collective.name(), times};
}

}  // namespace orrery::calibrate
