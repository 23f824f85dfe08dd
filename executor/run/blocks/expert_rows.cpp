#include "executor/run/blocks/expert_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "executor/errors.hpp"

namespace orrery::executor {

namespace {

using models::Operation;

/// The operand with each token's experts: the int32 operand that a row-moving operation reads; -1:
/// the block routes no tokens.
int routing_of(const models::Block& block) {
  for (const Operation& op : block.operations) {
    if (op.moves() == models::RowMove::none) continue;
    for (const models::OperandId id : op.reads) {
      if (block.operands[id].dtype == models::DType::int32) return static_cast<int>(id);
    }
  }
  return -1;
}

/// Bytes of the counts of the layer with the most experts, 8 for each expert.
std::int64_t bytes_of_counts(const models::Program& program) {
  std::int64_t most = 0;
  for (const models::Block& block : program.blocks) {
    for (const Operation& op : block.operations) {
      if (op.moves() == models::RowMove::none) continue;
      for (const models::OperandId id : op.writes) {
        most = std::max(most, 8 * block.operands[id].uncut[0]);
      }
    }
  }
  return most;
}

}  // namespace

double measured_imbalance(const std::vector<RoutedBytes>& ranks) {
  std::map<int, std::vector<const RoutedBytes*>> groups;
  for (const RoutedBytes& each : ranks) {
    if (!each.arrived.empty()) groups[each.group].push_back(&each);
  }
  double busiest = 0, mean = 0;
  for (const auto& [first, members] : groups) {
    for (std::size_t time = 0; time < members.front()->arrived.size(); ++time) {
      std::int64_t most = 0, all = 0;
      for (const RoutedBytes* each : members) {
        most = std::max(most, each->arrived.at(time));
        all += each->arrived.at(time);
      }
      busiest += static_cast<double>(most);
      mean += static_cast<double>(all) / static_cast<double>(members.size());
    }
  }
  return mean > 0 ? busiest / mean : 1;
}

ExpertRows::ExpertRows(const RankContext& rank) : rank_{rank} {
  for (const models::Block& block : rank.program.blocks) chosen_.push_back(routing_of(block));
  const std::int64_t bytes = bytes_of_counts(rank.program);
  if (bytes > 0) buffer_ = rank.device.allocate(Bytes{2 * bytes});
}

ExpertRows::~ExpertRows() {
  if (buffer_ != nullptr) rank_.device.release(buffer_);
}

std::vector<std::int64_t> ExpertRows::rows_of_experts(const View& chosen,
                                                      std::int64_t experts) const {
  std::vector<std::int32_t> routed(static_cast<std::size_t>(chosen.elements()));
  rank_.device.read(chosen.data, routed.data(), Bytes{chosen.elements() * 4});
  std::vector<std::int64_t> rows(static_cast<std::size_t>(experts), 0);
  for (const std::int32_t expert : routed) ++rows.at(static_cast<std::size_t>(expert));
  return rows;
}

void ExpertRows::require_room(const Operation& dispatch, const std::vector<View>& views) const {
  if (dispatch.drops()) return;
  const View &chosen = views[dispatch.reads[1]], &slots = views[dispatch.writes[0]];
  const std::vector<std::int64_t> rows = rows_of_experts(chosen, slots.shape[0]);
  const auto most = std::max_element(rows.begin(), rows.end());
  if (*most <= slots.shape[1]) return;
  const std::int64_t all = chosen.elements();
  const double mean = static_cast<double>(all) / static_cast<double>(rows.size());
  const double needed = std::ceil(static_cast<double>(*most) / mean * 100) / 100;
  throw RunFailure{
      Exit::invalid_program,
      fmt::format("a rank routes {} of its {} rows to expert {}, but the plan has room for {}: set "
                  "expert_room to at least {:.2f}, or set capacity, which drops the rows beyond it",
                  *most, all, most - rows.begin(), slots.shape[1], needed)};
}

void ExpertRows::exchange_counts(const Operation& op, const View& chosen, std::int64_t experts,
                                 std::int64_t room) {
  own_ = rows_of_experts(chosen, experts);
  arriving_.resize(own_.size());
  for (std::int64_t& rows : own_)
    rows = std::min(rows, room);  // rows beyond the capacity are dropped
  const Bytes bytes{8 * experts};
  rank_.device.write(own_.data(), buffer_, bytes);
  PendingCall pending;
  pending.communicator = op.communicator();
  pending.lane = op.queue;
  const auto members =
      static_cast<std::int64_t>(rank_.calls.group(op.communicator()).members.size());
  CollectiveCall counts;
  counts.kind = models::Collective::all_to_all;
  counts.send = buffer_;
  counts.receive = buffer_ + bytes.count();
  counts.count = bytes.count() / members;
  counts.element = Element::byte;
  rank_.calls.start(counts, pending);
  rank_.calls.wait(pending);
  rank_.device.read(counts.receive, arriving_.data(), bytes);
  sent_.group = rank_.calls.group(op.communicator()).members.front();
  sent_.arrived.push_back(std::accumulate(arriving_.begin(), arriving_.end(), std::int64_t{0}));
  known_ = true;
}

/// The slots at one end of an all-to-all, for every member and each expert of a rank in order: at
/// the tokens' end by the expert that rows go to, at the experts' end by the member they come from.
struct ExpertRows::Ends {
  const std::vector<std::int64_t>& rows;  // by member and expert
  std::int64_t local;                     // experts of a rank
  std::int64_t slot, room;                // bytes of a row, rows

  template <class Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto block = static_cast<std::int64_t>(i);
      visit(static_cast<int>(block / local), block * room * slot, rows[i]);
    }
  }
  std::vector<MemberPart> parts(std::byte* memory) const {
    std::vector<MemberPart> all;
    each([&](int member, std::int64_t at, std::int64_t count) {
      if (count > 0) all.push_back({member, memory + at, count * slot});
    });
    return all;
  }
};

void ExpertRows::fill(std::uint32_t block, const Operation& op, const std::vector<View>& views,
                      CollectiveCall& call) {
  const View &from = views[op.reads.front()], &to = views[op.writes.front()];
  const bool to_experts = from.shape[0] > to.shape[0];
  const View& at_sender = to_experts ? from : to;  // slots of all experts
  const std::int64_t experts = at_sender.shape[0], room = at_sender.shape[1];
  if (!known_) {
    const auto chosen = static_cast<std::size_t>(chosen_[block]);
    exchange_counts(op, views[chosen], experts, room);
  }
  const Group& group = rank_.calls.group(op.communicator());
  const std::int64_t local = experts / static_cast<std::int64_t>(group.members.size());
  const std::int64_t slot = at_sender.shape[2] * width_of(at_sender.dtype);
  const Ends mine{own_, local, slot, room}, theirs{arriving_, local, slot, room};
  call.kind = models::Collective::all_to_all_v;
  call.send_parts = (to_experts ? mine : theirs).parts(from.data);
  call.receive_parts = (to_experts ? theirs : mine).parts(to.data);
  for (const MemberPart& each : call.send_parts) {
    if (each.member != group.index) sent_.rows += each.bytes;
  }
  sent_.slots += (experts - local) * room * slot;
  if (!to_experts) return;
  theirs.each([&](int, std::int64_t at, std::int64_t count) {
    if (count == room) return;
    rank_.device.zero(to.data + at + count * slot, Bytes{(room - count) * slot});
  });
  rank_.calls.before(op.queue);
}

}  // namespace orrery::executor
