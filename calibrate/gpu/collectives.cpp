#include "calibrate/gpu/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::calibrate {

namespace {

using executor::Mark;
using models::Collective;

constexpr models::Lane on_data = models::Lane::data;
constexpr Bytes short_call{1 << 20};
constexpr int repeats_of_short = 8;

std::size_t index(int rank) {
  return static_cast<std::size_t>(rank);
}

}  // namespace

GpuCrew::GpuCrew(int ranks, const Make& make) : team{ranks}, members(index(ranks)) {
  std::vector<int> all(index(ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<executor::GroupId> groups(all.size());
  team.all([&](int rank) {
    members[index(rank)] = make(rank, ranks);
    executor::Fabric& fabric = *members[index(rank)].fabric;
    groups[index(rank)] = fabric.make_group(all);
    if (ranks > 1) fabric.connect(groups[index(rank)], 0, 1);
  });
  group = groups.front();
}

GpuCrew::~GpuCrew() {
  team.all([&](int rank) {
    members[index(rank)].fabric.reset();
    members[index(rank)].device.reset();
  });
}

Bytes cut_evenly(Bytes size, int ranks) {
  const std::int64_t unit = 4 * ranks;
  return Bytes{(size.count() + unit - 1) / unit * unit};
}

QueueCollective::QueueCollective(Collective kind, Bytes size, GpuCrew& crew)
    : kind_{kind}, size_{size}, crew_{crew} {
  ensure(size.count() % (4 * crew.team.ranks()) == 0, "a collective's size is cut evenly");
}

std::string QueueCollective::name() const {
  return fmt::format("{} {} GPUs {} B", models::name(kind_), crew_.team.ranks(), size_.count());
}

void QueueCollective::prepare() {
  const auto ranks = index(crew_.team.ranks());
  from_.assign(ranks, nullptr);
  to_.assign(ranks, nullptr);
  crew_.team.all([&](int rank) {
    executor::Device& device = *crew_.members[index(rank)].device;
    const std::vector<float> own(static_cast<std::size_t>(size_.count() / 4),
                                 static_cast<float>(rank + 1));
    from_[index(rank)] = device.allocate(size_);
    to_[index(rank)] = device.allocate(size_);
    device.write(own.data(), from_[index(rank)], size_);
    device.write(own.data(), to_[index(rank)], size_);
    call(rank, size_);
    device.finish();
  });
  check();
}

void QueueCollective::call(int rank, Bytes size) {
  executor::Fabric& fabric = *crew_.members[index(rank)].fabric;
  const int ranks = crew_.team.ranks();
  std::byte* from = from_[index(rank)];
  std::byte* to = to_[index(rank)];
  if (kind_ == Collective::send_receive) {
    if (rank > 1) return;
    const executor::TransferCall transfer{.group = crew_.group,
                                          .peer = 1 - rank,
                                          .buffer = rank == 0 ? from : to,
                                          .bytes = size.count(),
                                          .queue = on_data};
    return fabric.wait(rank == 0 ? fabric.send(transfer) : fabric.receive(transfer));
  }
  const std::int64_t whole = size.count() / 4;
  const bool shards = kind_ != Collective::all_reduce && kind_ != Collective::broadcast;
  fabric.wait(fabric.start({.kind = kind_,
                            .group = crew_.group,
                            .send = from,
                            .receive = to,
                            .count = shards ? whole / ranks : whole,
                            .element = executor::Element::fp32,
                            .root = 0,
                            .queue = on_data}));
}

/// The last rank's first element, of a shuffle the one that comes from the second rank.
void QueueCollective::check() {
  const int ranks = crew_.team.ranks();
  const int looked_at = kind_ == Collective::send_receive ? 1 : ranks - 1;
  float expected = static_cast<float>(ranks * (ranks + 1)) / 2;  // 1 + 2 + ... + n
  std::int64_t at = 0;
  if (kind_ == Collective::broadcast || kind_ == Collective::send_receive) expected = 1;
  if (kind_ == Collective::all_gather || kind_ == Collective::all_to_all) {
    expected = 2;
    at = size_.count() / ranks;
  }
  float found = 0;
  crew_.team.all([&](int rank) {
    if (rank != looked_at) return;
    crew_.members[index(rank)].device->read(to_[index(rank)] + at, &found, Bytes{sizeof found});
  });
  if (found == expected) return;
  throw executor::RunFailure{
      executor::Exit::local_failure,
      fmt::format("{} gives {} where {} is right: not timed", name(), found, expected)};
}

bool QueueCollective::run(std::vector<Time>& times) {
  const int repeats = size_ <= short_call ? repeats_of_short : 1;
  std::vector<Time> of(from_.size());
  crew_.team.all([&](int rank) {
    executor::Device& device = *crew_.members[index(rank)].device;
    call(rank, Bytes{4 * crew_.team.ranks()});
    const Mark begin = device.mark(on_data);
    for (int i = 0; i < repeats; ++i) call(rank, size_);
    const Mark end = device.mark(on_data);
    device.finish();
    of[index(rank)] = device.time_of(end) - device.time_of(begin);
    device.forget_marks();
  });
  const Time slowest = *std::max_element(of.begin(), of.end());
  times[0] = std::max(Time{1}, Time{slowest.count() / repeats});
  return true;
}

void QueueCollective::finish() {
  crew_.team.all([&](int rank) {
    if (index(rank) >= from_.size()) return;
    executor::Device& device = *crew_.members[index(rank)].device;
    for (std::byte* each : {from_[index(rank)], to_[index(rank)]}) {
      if (each != nullptr) device.release(each);
    }
  });
  from_.clear();
  to_.clear();
}

}  // namespace orrery::calibrate
