#include "models/evaluation/traffic/network_sweep.hpp"

namespace orrery::models::traffic {

void NetworkSweep::go_on(const NetworkSweep& before, const EarlyTraffic& early) {
  begun_ = before.begun_;
  inside_.assign(inside_.size(), {});
  channels_.clear();
  for (std::uint32_t c = 0; c < traffic_.channels.size(); ++c) {
    const ChannelTrack& channel = channels_.emplace_back(before.channels_[early.templates[c]]);
    transfers_under_way_ += channel.posted.size() - channel.ends.size();
  }
  ranks_.clear();
  for (std::uint32_t r = 0; r < traffic_.ranks.size(); ++r) {
    RankTrack& rank = ranks_.emplace_back(before.ranks_[early.ranks[r]]);
    for (RankTrack::Send& each : rank.sends) {
      each.channel = traffic_.ranks[r].channel(early.traffic.channels[each.channel].channel);
    }
    unfinished_ranks_ += rank.finished ? 0 : 1;
  }
  for (auto r = static_cast<std::uint32_t>(ranks_.size()); r-- > 0;) wake(r);
  drain();
}

}  // namespace orrery::models::traffic
