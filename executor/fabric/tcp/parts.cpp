#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/tcp/collective.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

/// Copies a member's parts for itself, which are not sent.
void copy_own(const CollectiveCall& call, int index) {
  auto taken = call.receive_parts.begin();
  for (const MemberPart& each : call.send_parts) {
    if (each.member != index) continue;
    while (taken != call.receive_parts.end() && taken->member != index) ++taken;
    ensure(taken != call.receive_parts.end() && taken->bytes == each.bytes,
           "a part is taken in another size");
    copy_bytes(taken->at, each.at, each.bytes);
    ++taken;
  }
}

}  // namespace

std::shared_ptr<InProgress> start_parts(const CollectiveJob& job) {
  const CollectiveCall& call = job.call;
  const auto work = std::make_shared<InProgress>();
  const auto rank_of = [&](const MemberPart& each) {
    return job.group.members.at(static_cast<std::size_t>(each.member));
  };
  work->left = 1;
  for (const MemberPart& each : call.receive_parts) {
    if (each.member == job.group.index) continue;
    ++work->left;
    job.wire.receive(rank_of(each), job.stream, each.at, static_cast<std::size_t>(each.bytes),
                     [work] { --work->left; });
  }
  for (const MemberPart& each : call.send_parts) {
    if (each.member == job.group.index) continue;
    ++work->left;
    job.wire.send(rank_of(each), job.stream, each.at, static_cast<std::size_t>(each.bytes),
                  [work] { --work->left; });
  }
  copy_own(call, job.group.index);
  --work->left;
  return work;
}

}  // namespace orrery::executor
