#include <algorithm>
#include <cstring>

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
class Ring final : public InProgress, public std::enable_shared_from_this<Ring> {
 public:
  explicit Ring(const CollectiveJob& job)
      : job_{job},
        members_{static_cast<int>(job.group.members.size())},
        bytes_{size_of(job.call.element)},
        chunk_{ring_chunk / bytes_},
        reduces_{job.call.kind != Collective::all_gather},
        gathers_{job.call.kind != Collective::reduce_scatter} {}

  void start() {
    const int own = job_.group.index;
    left = 1;
    // Send the own part first: what has arrived already is forwarded as soon as it is expected.
    if (reduces_) {
      send_part(source(wrapped(own - 1)), elements(wrapped(own - 1)));
      for (int s = 0; s + 1 < members_; ++s) expect_sums(wrapped(own - s - 2), s + 2 == members_);
    } else {
      if (result(own) != job_.call.send) {
        copy_bytes(result(own), job_.call.send, elements(own) * bytes_);
      }
      send_part(result(own), elements(own));
    }
    if (gathers_) {
      for (int s = 0; s + 1 < members_; ++s) expect_part(wrapped(own - s - 1), s + 2 == members_);
    }
    --left;
  }

 private:
  int wrapped(int member) const { return ((member % members_) + members_) % members_; }
  int next() const {
    return job_.group.members[static_cast<std::size_t>(wrapped(job_.group.index + 1))];
  }
  int previous() const {
    return job_.group.members[static_cast<std::size_t>(wrapped(job_.group.index - 1))];
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

  void send_part(const std::byte* data, std::int64_t count) {
    for (std::int64_t at = 0; at < count; at += chunk_) {
      send(data + at * bytes_, std::min(chunk_, count - at));
    }
  }
  void send(const std::byte* data, std::int64_t count) {
    ++left;
    job_.wire.send(next(), job_.stream, data, static_cast<std::size_t>(count * bytes_),
                   [self = shared_from_this()] { --self->left; });
  }

  void expect_sums(int part, bool last) {
    for (std::int64_t at = 0; at < elements(part); at += chunk_) {
      const std::int64_t count = std::min(chunk_, elements(part) - at);
      ++left;
      job_.wire.take(previous(), job_.stream, static_cast<std::size_t>(count * bytes_),
                     [self = shared_from_this(), part, at, count, last](WireBlock block) {
                       self->add(std::move(block), part, at, count, last);
                     });
    }
  }

  /// A chunk with the partial sum of the members before this one: adds its own and forwards it.
  void add(WireBlock block, int part, std::int64_t at, std::int64_t count, bool last) {
    const std::byte* operands[] = {block.data(), source(part) + at * bytes_};
    if (last) {
      std::byte* sum = result(part) + at * bytes_;
      sum_in_order(job_.call.element, operands, sum, count);
      job_.wire.give_back(std::move(block));
      if (gathers_) send(sum, count);
    } else {
      sum_in_order(job_.call.element, operands, block.data(), count);
      ++left;
      job_.wire.send(next(), job_.stream, std::move(block),
                     static_cast<std::size_t>(count * bytes_),
                     [self = shared_from_this()] { --self->left; });
    }
    --left;
  }

  /// Receives a complete part in its place, and forwards it unless this member is the last.
  void expect_part(int part, bool last) {
    for (std::int64_t at = 0; at < elements(part); at += chunk_) {
      const std::int64_t count = std::min(chunk_, elements(part) - at);
      std::byte* into = result(part) + at * bytes_;
      ++left;
      job_.wire.receive(previous(), job_.stream, into, static_cast<std::size_t>(count * bytes_),
                        [self = shared_from_this(), into, count, last] {
                          if (!last) self->send(into, count);
                          --self->left;
                        });
    }
  }

  CollectiveJob job_;
  int members_;
  std::int64_t bytes_;  // of one element
  std::int64_t chunk_;  // elements
  bool reduces_, gathers_;
};

/// A broadcast in chunks, which every member forwards to the next one, from the root to the last.
class Chain final : public InProgress, public std::enable_shared_from_this<Chain> {
 public:
  explicit Chain(const CollectiveJob& job) : job_{job} {}

  void start() {
    const CollectiveCall& call = job_.call;
    const int members = static_cast<int>(job_.group.members.size());
    const int position = (job_.group.index - call.root + members) % members;
    const auto rank = [&](int step) {
      return job_.group
          .members[static_cast<std::size_t>((job_.group.index + members + step) % members)];
    };
    const bool last = position + 1 == members;
    const std::int64_t size = call.count * size_of(call.element);
    left = 1;
    for (std::int64_t at = 0; at < size; at += ring_chunk) {
      const auto part = static_cast<std::size_t>(std::min(ring_chunk, size - at));
      if (position == 0) {
        forward(rank(1), call.send + at, part);
        continue;
      }
      std::byte* into = call.receive + at;
      ++left;
      job_.wire.receive(rank(-1), job_.stream, into, part,
                        [self = shared_from_this(), into, part, last, to = rank(1)] {
                          if (!last) self->forward(to, into, part);
                          --self->left;
                        });
    }
    if (position == 0 && call.receive != call.send) {
      copy_bytes(call.receive, call.send, size);
    }
    --left;
  }

 private:
  void forward(int to, const std::byte* data, std::size_t size) {
    ++left;
    job_.wire.send(to, job_.stream, data, size, [self = shared_from_this()] { --self->left; });
  }
  CollectiveJob job_;
};

}  // namespace

std::shared_ptr<InProgress> start_ring(const CollectiveJob& job) {
  const auto ring = std::make_shared<Ring>(job);
  ring->start();
  return ring;
}

std::shared_ptr<InProgress> start_chain(const CollectiveJob& job) {
  const auto chain = std::make_shared<Chain>(job);
  chain->start();
  return chain;
}

}  // namespace orrery::executor
