#include "calibrate/bench/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using models::Collective;

constexpr models::Lane on_data = models::Lane::data;
constexpr Bytes small_message{4096};
constexpr int launched_in_a_run = 50;  // below the queue depth at which the host must wait

}  // namespace

Bytes cut_evenly(Bytes size, int ranks) {
  const std::int64_t unit = 4 * ranks;
  return Bytes{(size.count() + unit - 1) / unit * unit};
}

CollectiveSubject::CollectiveSubject(Collective kind, Bytes size, RankSet& ranks)
    : TimedSubject{ranks, on_data, Over::slowest}, kind_{kind}, size_{size} {
  ensure(size.count() % (4 * ranks.ranks()) == 0, "a collective's size is cut evenly");
}

std::string CollectiveSubject::name() const {
  return fmt::format("{} {} ranks {} B", models::name(kind_), ranks().ranks(), size_.count());
}

void CollectiveSubject::set_up() {
  from_.resize(rank_index(ranks().ranks()));
  to_.resize(rank_index(ranks().ranks()));
  ranks().threads.all([&](int rank) {
    executor::Device& device = ranks().device(rank);
    const std::vector<float> own(static_cast<std::size_t>(size_.count() / 4),
                                 static_cast<float>(rank + 1));
    for (DeviceMemory* each : {&from_[rank_index(rank)], &to_[rank_index(rank)]}) {
      *each = allocated(device, size_);
      device.write(own.data(), each->get(), size_);
    }
    call(rank, size_);
    device.finish();
  });
  check();
}

void CollectiveSubject::call(int rank, Bytes size) {
  executor::Fabric& fabric = ranks().fabric(rank);
  std::byte* from = from_[rank_index(rank)].get();
  std::byte* to = to_[rank_index(rank)].get();
  if (kind_ == Collective::send_receive) {
    if (rank > 1) return;
    const executor::TransferCall transfer{.group = ranks().group(),
                                          .peer = 1 - rank,
                                          .buffer = rank == 0 ? from : to,
                                          .bytes = size.count(),
                                          .queue = on_data};
    return fabric.wait(rank == 0 ? fabric.send(transfer) : fabric.receive(transfer));
  }
  const std::int64_t whole = size.count() / 4;
  const bool shards = kind_ != Collective::all_reduce && kind_ != Collective::broadcast;
  fabric.wait(fabric.start({.kind = kind_,
                            .group = ranks().group(),
                            .send = from,
                            .receive = to,
                            .count = shards ? whole / ranks().ranks() : whole,
                            .element = executor::Element::fp32,
                            .root = 0,
                            .queue = on_data}));
}

/// Checks one element of the last rank, or of the receiver: the first one, or for an all-gather or
/// all-to-all the first that comes from the second rank.
void CollectiveSubject::check() {
  const int all = ranks().ranks();
  const int looked_at = kind_ == Collective::send_receive ? 1 : all - 1;
  float expected = static_cast<float>(all * (all + 1)) / 2;  // 1 + 2 + ... + n
  std::int64_t at = 0;
  if (kind_ == Collective::broadcast || kind_ == Collective::send_receive) expected = 1;
  if (kind_ == Collective::all_gather || kind_ == Collective::all_to_all) {
    expected = 2;
    at = size_.count() / all;
  }
  float found = 0;
  ranks().threads.all([&](int rank) {
    if (rank != looked_at) return;
    ranks().device(rank).read(to_[rank_index(rank)].get() + at, &found, Bytes{sizeof found});
  });
  if (found == expected) return;
  throw executor::RunFailure{
      executor::Exit::local_failure,
      fmt::format("{} gives {}, which should be {}: not timed", name(), found, expected)};
}

/// One small call makes all queues start together; ranks without queues start after the barrier.
void CollectiveSubject::enqueue(int rank, SegmentTimer& timer) {
  if (!ranks().device(rank).synchronous()) {
    call(rank, Bytes{4 * ranks().ranks()});
    timer.restart();
  }
  for (int i = 0; i < repeats(); ++i) call(rank, size_);
  timer.end_segment();
}

void CollectiveSubject::tear_down() noexcept {
  ranks().threads.all([&](int rank) {
    for (std::vector<DeviceMemory>* of : {&from_, &to_}) {
      if (rank_index(rank) < of->size()) (*of)[rank_index(rank)].reset();
    }
  });
  from_.clear();
  to_.clear();
}

CommunicationLaunch::CommunicationLaunch(RankSet& ranks, Clock& clock)
    : ranks_{ranks},
      clock_{clock},
      collective_{Collective::all_reduce, cut_evenly(small_message, ranks.ranks()), ranks} {}

std::string CommunicationLaunch::name() const {
  return fmt::format("launch of {}", collective_.name());
}

bool CommunicationLaunch::run(std::vector<Time>& times) {
  std::vector<Time> of(rank_index(ranks_.ranks()));
  ranks_.threads.all([&](int rank) {
    const Time begin = clock_.now();
    for (int i = 0; i < launched_in_a_run; ++i) collective_.call(rank, size());
    of[rank_index(rank)] = clock_.now() - begin;
    ranks_.device(rank).finish();
  });
  const Time slowest = *std::ranges::max_element(of);
  times[0] = std::max(Time{1}, Time{slowest.count() / launched_in_a_run});
  return true;
}

}  // namespace orrery::calibrate
