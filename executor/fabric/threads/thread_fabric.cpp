#include "executor/fabric/threads/thread_fabric.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/open_calls.hpp"
#include "executor/fabric/sums.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Collective;

/// A collective that all members have called, carried out by the last of them. No other thread
/// touches the buffers meanwhile.
class GroupCollective {
 public:
  explicit GroupCollective(const std::vector<CollectiveCall>& calls)
      : calls_{calls},
        first_{calls.front()},
        size_{first_.count * size_of(first_.element)},
        members_{static_cast<std::int64_t>(calls.size())} {
    for (const CollectiveCall& each : calls) {
      ensure(each.kind == first_.kind && each.count == first_.count &&
                 each.element == first_.element && each.root == first_.root,
             "members of a group called different collectives");
    }
  }

  void run() const {
    switch (first_.kind) {
      case Collective::all_reduce:
        return all_reduce();
      case Collective::reduce_scatter:
        return reduce_scatter();
      case Collective::all_gather:
        return all_gather();
      case Collective::broadcast:
        return broadcast();
      case Collective::all_to_all:
        return all_to_all();
      case Collective::all_to_all_v:
        return parts();
      default:
        throw ContractError{"threads have no such collective"};
    }
  }

 private:
  using Buffer = std::vector<std::byte>;

  std::vector<const std::byte*> sends(std::int64_t offset) const {
    std::vector<const std::byte*> all;
    for (const CollectiveCall& each : calls_) all.push_back(each.send + offset);
    return all;
  }
  static void put(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (to != from) copy_bytes(to, from, bytes);
  }

  void all_reduce() const {
    Buffer sum(static_cast<std::size_t>(size_));
    sum_in_order(first_.element, sends(0), sum.data(), first_.count);
    for (const CollectiveCall& each : calls_) put(each.receive, sum.data(), size_);
  }
  /// Computes all sums before any is written: a member may receive inside what it sends.
  void reduce_scatter() const {
    Buffer sums(static_cast<std::size_t>(size_ * members_));
    sum_in_order(first_.element, sends(0), sums.data(), first_.count * members_);
    for (std::int64_t m = 0; m < members_; ++m) put(at(m).receive, sums.data() + m * size_, size_);
  }
  void all_gather() const {
    Buffer whole(static_cast<std::size_t>(size_ * members_));
    for (std::int64_t m = 0; m < members_; ++m) put(whole.data() + m * size_, at(m).send, size_);
    for (const CollectiveCall& each : calls_) put(each.receive, whole.data(), size_ * members_);
  }
  void broadcast() const {
    for (const CollectiveCall& each : calls_) put(each.receive, at(first_.root).send, size_);
  }
  void all_to_all() const {
    std::vector<Buffer> sent;
    for (const CollectiveCall& each : calls_) {
      sent.emplace_back(each.send, each.send + size_ * members_);
    }
    for (std::int64_t m = 0; m < members_; ++m) {
      for (std::int64_t from = 0; from < members_; ++from) {
        put(at(m).receive + from * size_, sent[static_cast<std::size_t>(from)].data() + m * size_,
            size_);
      }
    }
  }
  /// The k-th part that a member sends to another is the k-th that the other receives from it.
  void parts() const {
    for (std::int64_t from = 0; from < members_; ++from) {
      for (std::int64_t to = 0; to < members_; ++to) {
        const std::vector<MemberPart> given = with(at(from).send_parts, to);
        const std::vector<MemberPart> taken = with(at(to).receive_parts, from);
        ensure(given.size() == taken.size(), "members disagree on the parts of a collective");
        for (std::size_t i = 0; i < given.size(); ++i) {
          ensure(given[i].bytes == taken[i].bytes, "a part is taken in another size");
          put(taken[i].at, given[i].at, given[i].bytes);
        }
      }
    }
  }
  static std::vector<MemberPart> with(const std::vector<MemberPart>& all, std::int64_t member) {
    std::vector<MemberPart> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](const MemberPart& each) { return each.member == member; });
    return some;
  }
  const CollectiveCall& at(std::int64_t member) const {
    return calls_[static_cast<std::size_t>(member)];
  }

  const std::vector<CollectiveCall>& calls_;
  const CollectiveCall& first_;
  std::int64_t size_, members_;
};

int member_of(const std::vector<int>& members, int rank) {
  const int index = index_in(members, rank);
  ensure(index >= 0, "a rank calls in a group that it is no member of");
  return index;
}

}  // namespace

/// One rank's fabric, which numbers its own calls and requests.
class ThreadFabric final : public Fabric {
 public:
  ThreadFabric(ThreadWorld& world, int rank) : world_{world}, rank_{rank} {}

  std::string_view name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int ranks() const override { return world_.ranks(); }

  GroupId make_group(std::span<const int> members) override {
    calls_.push_back(0);
    return world_.make_group(calls_.size() - 1, members);
  }
  Request start(const CollectiveCall& call) override {
    return open_.keep(world_.join(call, calls_.at(call.group)++, rank_));
  }
  Request transfer(const TransferCall& call, TransferEnd end) override {
    return open_.keep(world_.transfer(call, rank_, end == TransferEnd::sends));
  }
  bool test(Request request) override { return world_.test(*open_.at(request)); }
  void wait(Request request) override {
    world_.wait(*open_.at(request));
    open_.erase(request);
  }
  void abort(std::string_view why) noexcept override { world_.abort(why); }

 private:
  ThreadWorld& world_;
  int rank_;
  std::vector<std::uint64_t> calls_;  // collectives so far, by group
  OpenCalls<ThreadWorld::Shared> open_;
};

ThreadWorld::ThreadWorld(int ranks, std::chrono::milliseconds deadline)
    : ranks_{ranks}, deadline_{deadline} {}
ThreadWorld::~ThreadWorld() = default;

std::unique_ptr<Fabric> ThreadWorld::fabric(int rank) {
  ensure(rank >= 0 && rank < ranks_, "a thread's rank lies outside its world");
  return std::make_unique<ThreadFabric>(*this, rank);
}

void ThreadWorld::abort(std::string_view why) noexcept {
  const std::lock_guard guard{lock_};
  if (!aborted_) why_ = why;
  aborted_ = true;
  changed_.notify_all();
}

void ThreadWorld::refuse_if_aborted() const {
  if (aborted_) throw RunFailure{Exit::peer_failed, why_};
}

GroupId ThreadWorld::make_group(std::uint64_t number, std::span<const int> members) {
  const std::lock_guard guard{lock_};
  while (groups_.size() <= number) groups_.emplace_back();
  ThreadGroup& group = groups_[number];
  if (group.members.empty()) group.members.assign(members.begin(), members.end());
  ensure(std::equal(members.begin(), members.end(), group.members.begin(), group.members.end()),
         "ranks make different groups");
  return static_cast<GroupId>(number);
}

ThreadWorld::Shared ThreadWorld::join(const CollectiveCall& call, std::uint64_t number, int rank) {
  const std::lock_guard guard{lock_};
  refuse_if_aborted();
  ThreadGroup& group = groups_.at(call.group);
  const int member = member_of(group.members, rank);
  Shared& meeting = group.collectives[number];
  if (!meeting) {
    meeting = std::make_shared<WaitingCall>();
    meeting->calls.resize(group.members.size());
  }
  meeting->calls[static_cast<std::size_t>(member)] = call;
  Shared mine = meeting;
  if (++mine->arrived == group.members.size()) {
    GroupCollective{mine->calls}.run();
    group.collectives.erase(number);
    finish(*mine);
  }
  return mine;
}

ThreadWorld::Shared ThreadWorld::transfer(const TransferCall& call, int rank, bool sends) {
  const std::lock_guard guard{lock_};
  refuse_if_aborted();
  ThreadGroup& group = groups_.at(call.group);
  const int me = member_of(group.members, rank);
  const std::pair<int, int> way = sends ? std::pair{me, call.peer} : std::pair{call.peer, me};
  std::deque<Shared>& theirs = (sends ? group.receives : group.sends)[way];
  if (theirs.empty()) {
    auto mine = std::make_shared<WaitingCall>();
    mine->first = call.buffer;
    mine->bytes = call.bytes;
    (sends ? group.sends : group.receives)[way].push_back(mine);
    return mine;
  }
  Shared met = theirs.front();
  theirs.pop_front();
  ensure(met->bytes == call.bytes, "a send meets a receive of another size");
  std::byte* to = sends ? met->first : call.buffer;
  const std::byte* from = sends ? call.buffer : met->first;
  copy_bytes(to, from, call.bytes);
  finish(*met);
  return met;
}

void ThreadWorld::finish(WaitingCall& meeting) {
  meeting.done = true;
  changed_.notify_all();
}

bool ThreadWorld::test(const WaitingCall& meeting) {
  const std::lock_guard guard{lock_};
  refuse_if_aborted();
  return meeting.done;
}

void ThreadWorld::wait(const WaitingCall& meeting) {
  std::unique_lock guard{lock_};
  const bool in_time =
      changed_.wait_for(guard, deadline_, [&] { return aborted_ || meeting.done; });
  if (meeting.done) return;
  refuse_if_aborted();
  if (!in_time)
    throw RunFailure{Exit::deadline, "the other ranks did not come before the deadline"};
}

}  // namespace orrery::executor
