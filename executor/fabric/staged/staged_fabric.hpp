#pragma once
// Uses a host fabric (the carrier) for a device whose memory the host cannot access: a call copies
// what it sends from the device to a host buffer, the carrier moves it between host buffers, and
// `wait` copies what has arrived to the device. The carrier computes sums: over threads and tcp on
// the CPU, in the order of the ranks.
//
// This is correct whatever the device's queues are doing: a read is enqueued after all of them, and
// what arrives is written when they have released the memory. The cost: every call synchronises
// host and device and crosses the host's memory twice, so almost nothing of it overlaps with
// compute.

#include <string>
#include <unordered_map>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/fabric/open_calls.hpp"

namespace orrery::executor {

class StagedFabric final : public Fabric {
 public:
  /// Carrier and device outlive it. Groups are the carrier's, so those that were made before stay
  /// valid.
  StagedFabric(Fabric& carrier, Device& device);
  /// Aborts open calls, because the carrier would write into freed memory.
  ~StagedFabric() override;

  std::string_view name() const override { return name_; }  // "tcp, staged"
  int rank() const override { return carrier_.rank(); }
  int ranks() const override { return carrier_.ranks(); }

  GroupId make_group(std::span<const int> members) override;
  void connect(GroupId group, int from, int to) override { carrier_.connect(group, from, to); }
  Request start(const CollectiveCall& call) override;
  Request transfer(const TransferCall& call, TransferEnd end) override;
  bool test(Request request) override { return carrier_.test(open_.at(request).carried); }
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override { carrier_.abort(why); }

 private:
  using Buffer = std::vector<std::byte>;

  /// A call in flight, and where what arrives is copied; a send has nothing to copy.
  struct StagedCall {
    Request carried{};
    Buffer buffer{};
    const std::byte* from = nullptr;  // in the buffer
    std::byte* to = nullptr;          // on the device
    std::int64_t bytes = 0;
    std::vector<MemberPart>
        receive_parts{};  // of an all_to_all_v: on the device, in the buffer's order
    bool in_use = true;   // may something enqueued earlier touch `to` still?
  };

  /// A group's size and this rank's index, which give the sizes and offsets of a call's buffers.
  struct StagedGroup {
    std::int64_t members = 0;
    int index = -1;  // of this rank
  };

  Request start_parts(const CollectiveCall& call);
  Buffer buffer_of(std::int64_t bytes);

  Fabric& carrier_;
  Device& device_;
  std::string name_;
  std::unordered_map<GroupId, StagedGroup> groups_;
  OpenCalls<StagedCall> open_;
  std::vector<Buffer> spare_;  // reused: every step makes the same calls
};

}  // namespace orrery::executor
