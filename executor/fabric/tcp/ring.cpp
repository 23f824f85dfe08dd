#include <algorithm>

#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/sums.hpp"
#include "executor/fabric/tcp/collective.hpp"

namespace orrery::executor {

namespace {

using models::Collective;

/// Ring reduce-scatter, all-gather, or one after the other (all-reduce). In step s of the
/// reduce-scatter, member i receives part i-s-2, with the partial sums of all members from part+1
/// on; in step n-2 that is its own part. In step s of the all-gather it receives part i-s-1,
/// complete.
class Ring final : public TcpCollective {
 public:
  explicit Ring(const CollectiveJob& job)
      : TcpCollective{job},
        members_{job.members()},
        next_{job.rank_of(job.group.index + 1)},
        previous_{job.rank_of(job.group.index - 1)},
        bytes_{size_of(job.call.element)},
        chunk_{ring_chunk / bytes_},
        reduces_{job.call.kind != Collective::all_gather},
        gathers_{job.call.kind != Collective::reduce_scatter} {}

 private:
  void start() override {
    const int own = job_.group.index;
    // Send the own part first: what has arrived already is forwarded as soon as it is expected.
    if (reduces_) {
      const int first = job_.wrapped(own - 1);
      send_part(source(first), elements(first));
      for (int s = 0; s + 1 < members_; ++s) {
        expect_sums(job_.wrapped(own - s - 2), s + 2 == members_);
      }
    } else {
      if (result(own) != job_.call.send) {
        copy_bytes(result(own), job_.call.send, elements(own) * bytes_);
      }
      send_part(result(own), elements(own));
    }
    if (!gathers_) return;
    for (int s = 0; s + 1 < members_; ++s) {
      expect_part(job_.wrapped(own - s - 1), s + 2 == members_);
    }
  }

  /// First element of a part: an all-reduce cuts its buffer, the others have a shard per member.
  std::int64_t first(int part) const {
    if (reduces_ && gathers_) return job_.call.count * part / members_;
    return job_.call.count * part;
  }
  std::int64_t elements(int part) const { return first(part + 1) - first(part); }
  const std::byte* source(int part) const { return job_.call.send + first(part) * bytes_; }
  std::byte* result(int part) const {
    return job_.call.receive + (gathers_ ? first(part) * bytes_ : 0);
  }
  std::size_t size(std::int64_t count) const { return static_cast<std::size_t>(count * bytes_); }

  /// Calls f(first element, elements) for each chunk of a part of `count` elements.
  template <class F>
  void for_each_chunk(std::int64_t count, F f) {
    for (std::int64_t at = 0; at < count; at += chunk_) f(at, std::min(chunk_, count - at));
  }

  void send_part(const std::byte* data, std::int64_t of_part) {
    for_each_chunk(of_part, [&](std::int64_t at, std::int64_t count) {
      send(next_, data + at * bytes_, size(count));
    });
  }

  void expect_sums(int part, bool last) {
    for_each_chunk(elements(part), [&](std::int64_t at, std::int64_t count) {
      take(previous_, size(count), [this, part, at, count, last](WireBlock block) {
        add(std::move(block), part, at, count, last);
      });
    });
  }

  /// A chunk with the partial sum of the members before this one: adds its own and forwards it.
  void add(WireBlock block, int part, std::int64_t at, std::int64_t count, bool last) {
    const std::byte* operands[] = {block.data(), source(part) + at * bytes_};
    if (last) {
      std::byte* sum = result(part) + at * bytes_;
      sum_in_order(job_.call.element, operands, sum, count);
      give_back(std::move(block));
      if (gathers_) send(next_, sum, size(count));
    } else {
      sum_in_order(job_.call.element, operands, block.data(), count);
      send(next_, std::move(block), size(count));
    }
  }

  /// Receives a complete part in its place, and forwards it unless this member is the last.
  void expect_part(int part, bool last) {
    for_each_chunk(elements(part), [&](std::int64_t at, std::int64_t count) {
      std::byte* into = result(part) + at * bytes_;
      receive(previous_, into, size(count), [this, into, count, last] {
        if (!last) send(next_, into, size(count));
      });
    });
  }

  int members_, next_, previous_;  // the neighbours as ranks of the world
  std::int64_t bytes_;             // of one element
  std::int64_t chunk_;             // elements
  bool reduces_, gathers_;
};

/// A broadcast in chunks, which every member forwards to the next one, from the root to the last.
class Chain final : public TcpCollective {
 public:
  using TcpCollective::TcpCollective;

 private:
  void start() override {
    const CollectiveCall& call = job_.call;
    const int own = job_.group.index, position = job_.wrapped(own - call.root);
    const int next = job_.rank_of(own + 1), previous = job_.rank_of(own - 1);
    const bool last = position + 1 == job_.members();
    const std::int64_t all = call.count * size_of(call.element);
    for (std::int64_t at = 0; at < all; at += ring_chunk) {
      const auto size = static_cast<std::size_t>(std::min(ring_chunk, all - at));
      if (position == 0) {
        send(next, call.send + at, size);
        continue;
      }
      std::byte* into = call.receive + at;
      receive(previous, into, size, [this, into, size, last, next] {
        if (!last) send(next, into, size);
      });
    }
    if (position == 0 && call.receive != call.send) copy_bytes(call.receive, call.send, all);
  }
};

}  // namespace

std::shared_ptr<TcpCall> start_ring(const CollectiveJob& job) {
  return started<Ring>(job);
}

std::shared_ptr<TcpCall> start_chain(const CollectiveJob& job) {
  return started<Chain>(job);
}

}  // namespace orrery::executor
