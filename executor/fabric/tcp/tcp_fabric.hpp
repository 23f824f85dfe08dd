#pragma once
// A fabric of sockets, Unix or TCP: needs no library, crosses machines, and says which peer was
// lost. Progress is made inside its calls only; when nothing can move it sleeps, so ranks may
// outnumber cores. Every two ranks hold a connection: meant for hundreds of ranks, not for
// thousands.

#include <chrono>
#include <deque>
#include <memory>

#include "executor/fabric/open_calls.hpp"
#include "executor/fabric/tcp/collective.hpp"
#include "executor/fabric/tcp/wire.hpp"

namespace orrery::executor {

struct TcpSettings {
  std::chrono::milliseconds patience{60'000};  // until all ranks are connected
};

class TcpFabric final : public Fabric {
 public:
  /// Connects all ranks. Collective over the world. The store is used here only.
  TcpFabric(Store& store, const TcpSettings& settings);
  ~TcpFabric() override;

  std::string_view name() const override { return "tcp"; }
  int rank() const override { return wire_.rank(); }
  int ranks() const override { return wire_.ranks(); }

  GroupId make_group(std::span<const int> members) override;
  Request start(const CollectiveCall& call) override;
  Request transfer(const TransferCall& call, TransferEnd end) override;
  bool test(Request request) override;
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override { wire_.abort(why); }

 private:
  TcpGroup& group_of(GroupId group);

  std::deque<TcpGroup> groups_;  // collectives hold references
  OpenCalls<std::shared_ptr<TcpCall>> requests_;
  Wire wire_;
};

}  // namespace orrery::executor
