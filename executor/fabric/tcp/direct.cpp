
#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/sums.hpp"
#include "executor/fabric/tcp/collective.hpp"

namespace orrery::executor {

namespace {

using models::Collective;

/// Every member sends every other one its part, in one hop.
class Direct final : public TcpCollective {
 public:
  explicit Direct(const CollectiveJob& job)
      : TcpCollective{job},
        size_{static_cast<std::size_t>(job.call.count * size_of(job.call.element))},
        sums_{job.call.kind == Collective::all_reduce ||
              job.call.kind == Collective::reduce_scatter} {}

 private:
  void start() override {
    const CollectiveCall& call = job_.call;
    const int members = job_.members();
    send_ = call.send;
    const bool exchanged = call.kind == Collective::all_to_all;
    if (exchanged && call.send == call.receive) {  // arriving parts overwrite parts not yet sent
      copy_.assign(call.send, call.send + at(members));
      send_ = copy_.data();
    }
    if (sums_) arrived_.resize(static_cast<std::size_t>(members));
    for (int distance = 1; distance < members; ++distance) {
      const int to = job_.wrapped(job_.group.index + distance);
      const int from = job_.wrapped(job_.group.index - distance);
      if (sums_) {
        take(job_.rank_of(from), size_, [this, from](WireBlock block) {
          arrived_[static_cast<std::size_t>(from)] = std::move(block);
        });
      } else {
        receive(job_.rank_of(from), call.receive + at(from), size_);
      }
      send(job_.rank_of(to), part_for(to), size_);
    }
  }

  std::size_t at(int member) const { return static_cast<std::size_t>(member) * size_; }
  bool parted() const {
    return job_.call.kind == Collective::all_to_all || job_.call.kind == Collective::reduce_scatter;
  }
  const std::byte* part_for(int member) const { return send_ + (parted() ? at(member) : 0); }

  /// All messages are sent and received, so buffers that are used in place may be overwritten.
  void finish() override {
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
    for (WireBlock& each : arrived_) give_back(std::move(each));
  }

  std::size_t size_;  // bytes of one part
  bool sums_;
  const std::byte* send_ = nullptr;
  std::vector<std::byte> copy_;
  std::vector<WireBlock> arrived_;  // by member
};

}  // namespace

std::shared_ptr<TcpCall> start_direct(const CollectiveJob& job) {
  return started<Direct>(job);
}

}  // namespace orrery::executor
