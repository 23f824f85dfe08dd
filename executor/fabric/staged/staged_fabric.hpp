#pragma once
// A fabric of the host around a device whose memory the host cannot touch: what is sent is read
// from the device, carried between buffers of the host, and written back where it is awaited.
// Sums are the carrier's: over threads and tcp those of the processor, in the order of the ranks.
//
// Right whatever the device's queues are doing: a read is enqueued after all of them, and what
// arrives is written when they have released the memory. The cost: every call synchronises host and
// device and crosses the host's memory twice, so next to nothing of it overlaps with computing.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

class StagedFabric final : public Fabric {
 public:
  /// Both outlive it. The carrier's groups are this fabric's: groups that were made before stay
  /// valid.
  StagedFabric(Fabric& carrier, Device& device);
  /// What is still open would be carried into memory that is gone: it is aborted.
  ~StagedFabric() override;

  std::string_view name() const override { return name_; }  // "tcp, staged"
  int rank() const override { return carrier_.rank(); }
  int ranks() const override { return carrier_.ranks(); }

  GroupId make_group(std::span<const int> members) override;
  void connect(GroupId group, int from, int to) override { carrier_.connect(group, from, to); }
  Request start(const CollectiveCall& call) override;
  Request send(const TransferCall& call) override;
  Request receive(const TransferCall& call) override;
  bool test(Request request) override;
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override { carrier_.abort(why); }

 private:
  using Buffer = std::vector<std::byte>;

  /// One call on its way, and what arrives: nothing, of a send.
  struct StagedCall {
    Request carried{};
    Buffer buffer{};
    const std::byte* from = nullptr;  // in the buffer
    std::byte* to = nullptr;          // on the device
    std::int64_t bytes = 0;
    std::vector<MemberPart> takes{};  // of an all_to_all_v: on the device, in the buffer's order
    bool in_use = true;               // may something enqueued earlier touch `to` still?
  };

  /// What a collective's ends are sized and placed by.
  struct StagedGroup {
    std::int64_t members = 0;
    int index = -1;  // of this rank
  };

  Request start_parts(const CollectiveCall& call);
  Buffer buffer_of(std::int64_t bytes);
  Request keep(StagedCall open);

  Fabric& carrier_;
  Device& device_;
  std::string name_;
  std::unordered_map<GroupId, StagedGroup> groups_;
  std::unordered_map<std::uint64_t, StagedCall> open_;
  std::vector<Buffer> spare_;  // a step's calls are the last step's
  std::uint64_t last_ = 0;
};

}  // namespace orrery::executor
