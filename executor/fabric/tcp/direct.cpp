#include <cstring>

#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/sums.hpp"
#include "executor/fabric/tcp/collective.hpp"

namespace orrery::executor {

namespace {

using models::Collective;

/// Every member sends every other one its part, in one hop.
class Direct final : public InProgress, public std::enable_shared_from_this<Direct> {
 public:
  explicit Direct(const CollectiveJob& job)
      : job_{job},
        members_{static_cast<int>(job.group.members.size())},
        size_{static_cast<std::size_t>(job.call.count * size_of(job.call.element))},
        sums_{job.call.kind == Collective::all_reduce ||
              job.call.kind == Collective::reduce_scatter} {}

  void start() {
    const CollectiveCall& call = job_.call;
    send_ = call.send;
    const bool exchanged = call.kind == Collective::all_to_all;
    if (exchanged && call.send == call.receive) {  // arriving parts overwrite parts not yet sent
      copy_.assign(call.send, call.send + size_ * static_cast<std::size_t>(members_));
      send_ = copy_.data();
    }
    left = 2 * static_cast<std::size_t>(members_ - 1) + 1;
    if (sums_) arrived_.resize(static_cast<std::size_t>(members_));
    const auto self = shared_from_this();
    for (int distance = 1; distance < members_; ++distance) {
      const int to = (job_.group.index + distance) % members_;
      const int from = (job_.group.index + members_ - distance) % members_;
      if (sums_) {
        job_.wire.take(rank_of(from), job_.stream, size_, [self, from](WireBlock block) {
          self->arrived_[static_cast<std::size_t>(from)] = std::move(block);
          self->step();
        });
      } else {
        job_.wire.receive(rank_of(from), job_.stream, call.receive + at(from), size_,
                          [self] { self->step(); });
      }
      job_.wire.send(rank_of(to), job_.stream, part_for(to), size_, [self] { self->step(); });
    }
    step();
  }

 private:
  int rank_of(int member) const { return job_.group.members[static_cast<std::size_t>(member)]; }
  std::size_t at(int member) const { return static_cast<std::size_t>(member) * size_; }
  bool parted() const {
    return job_.call.kind == Collective::all_to_all || job_.call.kind == Collective::reduce_scatter;
  }
  const std::byte* part_for(int member) const { return send_ + (parted() ? at(member) : 0); }

  void step() {
    if (--left == 0) finish();
  }

  /// All messages are sent and received, so buffers that are used in place may be overwritten.
  void finish() {
    const CollectiveCall& call = job_.call;
    const std::byte* own = part_for(job_.group.index);
    if (!sums_) {
      std::byte* to = call.receive + at(job_.group.index);
      if (to != own) copy_bytes(to, own, size_);
      return;
    }
    std::vector<const std::byte*> parts;
    for (const WireBlock& each : arrived_) parts.push_back(each.data());
    parts[static_cast<std::size_t>(job_.group.index)] = own;
    sum_in_order(call.element, parts, call.receive, call.count);
    for (WireBlock& each : arrived_) job_.wire.give_back(std::move(each));
  }

  CollectiveJob job_;
  int members_;
  std::size_t size_;  // bytes of one part
  bool sums_;
  const std::byte* send_ = nullptr;
  std::vector<std::byte> copy_;
  std::vector<WireBlock> arrived_;  // by member
};

}  // namespace

std::shared_ptr<InProgress> start_direct(const CollectiveJob& job) {
  const auto direct = std::make_shared<Direct>(job);
  direct->start();
  return direct;
}

}  // namespace orrery::executor
