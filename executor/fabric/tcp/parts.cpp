#include "executor/device/copy_bytes.hpp"
#include "executor/fabric/tcp/collective.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

/// Every part is one message; those of a member for itself are copied.
class TcpParts final : public TcpCollective {
 public:
  using TcpCollective::TcpCollective;

 private:
  void start() override {
    for (const MemberPart& each : job_.call.receive_parts) {
      if (each.member == job_.group.index) continue;
      receive(job_.rank_of(each.member), each.at, static_cast<std::size_t>(each.bytes));
    }
    for (const MemberPart& each : job_.call.send_parts) {
      if (each.member == job_.group.index) continue;
      send(job_.rank_of(each.member), each.at, static_cast<std::size_t>(each.bytes));
    }
    copy_own();
  }

  void copy_own() const {
    const std::vector<MemberPart>& all = job_.call.receive_parts;
    auto taken = all.begin();
    for (const MemberPart& each : job_.call.send_parts) {
      if (each.member != job_.group.index) continue;
      while (taken != all.end() && taken->member != each.member) ++taken;
      ensure(taken != all.end() && taken->bytes == each.bytes, "a part is taken in another size");
      copy_bytes(taken->at, each.at, each.bytes);
      ++taken;
    }
  }
};

}  // namespace

std::shared_ptr<TcpCall> start_parts(const CollectiveJob& job) {
  return started<TcpParts>(job);
}

}  // namespace orrery::executor
