#include <algorithm>

#include "models/evaluation/traffic/network_sweep.hpp"

namespace orrery::models::traffic {

ChannelTrack ChannelTrack::after(const ChannelTrack& track) {
  const auto left = [&](const auto& all) {
    return std::decay_t<decltype(all)>(
        all.begin() + static_cast<std::ptrdiff_t>(std::min(track.ends.size(), all.size())),
        all.end());
  };
  return {.before = &track,
          .first = track.ends.size(),
          .ready = left(track.ready),
          .posted = left(track.posted),
          .receives = left(track.receives),
          .starts = left(track.starts),
          .ends = {},
          .busy = track.busy,
          .free = track.free};
}

/// The rest of a rank's list needs few of the times before it; only those are copied.
void NetworkSweep::go_on(const NetworkSweep& before, const EarlyJob& early) {
  before_ = &before;
  early_ = early;
  begun_ = before.begun_;
  unit_entries_.assign(traffic_.units.size(), {});
  channels_.clear();
  for (std::uint32_t c = 0; c < traffic_.channels.size(); ++c) {
    channels_.push_back(ChannelTrack::after(before.channels_[early.source(traffic_, c)]));
    transfers_under_way_ += channels_[c].posted.size();
  }
  const std::vector<Token> first = before.oldest_needed();
  ranks_.clear();
  for (std::uint32_t r = 0; r < traffic_.ranks.size(); ++r) {
    const std::uint32_t stood = early.rank(r);
    ranks_.push_back(track_after(before.ranks_[stood], first[stood], r));
    unfinished_ranks_ += ranks_[r].finished ? 0 : 1;
  }
  go_on_with_joints();
  go_on_inside();
}

/// Copies joint collectives, which other jobs may be running, and counts their arrived members
/// again: there may be more of them now.
void NetworkSweep::go_on_with_joints() {
  const auto channels = static_cast<std::uint32_t>(channels_.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const auto stood = early_.source(traffic_, channels + g) -
                       static_cast<std::uint32_t>(before_->channels_.size());
    joint_of_group_[g] = before_->joint_of_group_[stood];
    for (std::size_t j = 0; j < program_.collectives.size(); ++j) {
      if (traffic_.structure_of_joint[j] != traffic_.groups[g].structure) continue;
      JointTrack& joint = joints_[first_instance_[j] + place_of_group_[g]];
      joint = before_->joints_[before_->first_instance_[j] + before_->place_of_group_[stood]];
      joint.arrived = 0;
    }
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    if (!ranks_[r].announced) continue;
    const Token i = ranks_[r].joints[ranks_[r].joint_at];
    ++joints_[instance(r, (*ranks_[r].list)[i].target)].arrived;
  }
}

/// The same for collectives inside blocks.
void NetworkSweep::go_on_inside() {
  const auto channels = static_cast<std::uint32_t>(channels_.size());
  for (std::uint32_t g = 0; g < traffic_.groups.size(); ++g) {
    const auto stood = early_.source(traffic_, channels + g) -
                       static_cast<std::uint32_t>(before_->channels_.size());
    inside_[g] = before_->inside_[stood];
    inside_[g].arrived = 0;
  }
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) {
    const RankTrack& rank = ranks_[r];
    if (!rank.inside.active || !rank.inside.begun) continue;
    const Instruction& each = (*rank.list)[rank.device_at];
    const std::uint32_t block =
        program_.phases[each.target].invocations[rank.inside.invocation].block;
    for (std::size_t i = 0; i < rank.inside.meetings.size(); ++i) {
      const InsideRun::Meeting& meeting = rank.inside.meetings[i];
      if (!meeting.announced || meeting.end != unknown) continue;
      ++inside_[inside_group(r, block, i)].arrived;
    }
  }
}

/// For each rank, the first instruction whose times may still be needed.
std::vector<Token> NetworkSweep::oldest_needed() const {
  std::vector<Token> oldest;
  for (const RankTrack& rank : ranks_) {
    Token& first = oldest.emplace_back(std::min(rank.host_at, rank.device_at));
    for (std::size_t j = rank.joint_at; j < rank.joints.size(); ++j) {
      first = std::min(first, rank.joints[j]);
    }
    for (const RankTrack::Send& each : rank.sends) {
      if (!rank.known((*rank.list)[each.at].input)) first = std::min(first, each.at);
    }
  }
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    const ChannelTrack& channel = channels_[c];
    Token& first = oldest[traffic_.channels[c].to];
    for (std::size_t k = channel.ends.size(); k < channel.receives.size(); ++k) {
      first = std::min(first, channel.receives[k]);
    }
  }
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const std::vector<Instruction>& list = *ranks_[r].list;
    for (Token i = oldest[r], at = i; at < list.size(); ++at) {
      if (list[at].input != no_token) i = std::min(i, list[at].input);
      if (list[at].awaits != no_token) i = std::min(i, list[at].awaits);
      oldest[r] = i;
    }
  }
  return oldest;
}

RankTrack NetworkSweep::track_after(const RankTrack& before, Token first, std::uint32_t r) const {
  RankTrack rank;
  rank.list = before.list;
  rank.speed = before.speed;
  rank.alone = traffic_.inside.kinds > 0 || traffic_.units[traffic_.ranks[r].unit].size() == 1;
  rank.host_at = before.host_at;
  rank.device_at = before.device_at;
  rank.launched = before.launched;
  rank.host = before.host;
  rank.state = before.state;
  rank.first = first;
  rank.notes.assign(before.notes.begin() + (first - before.first), before.notes.end());
  for (RankTrack::Note& note : rank.notes) note.send = 0;
  rank.data_free = before.data_free;
  rank.joints.assign(before.joints.begin() + static_cast<std::ptrdiff_t>(before.joint_at),
                     before.joints.end());
  rank.announced = before.announced;
  rank.ready = before.ready;
  rank.inside = before.inside;
  rank.finished = before.finished;
  for (RankTrack::Send each : before.sends) {
    const Token input = (*rank.list)[each.at].input;
    if (before.known(input)) continue;
    each.channel = traffic_.ranks[r].channel(early_.traffic->channels[each.channel].channel);
    each.next = rank.note(input).send;
    rank.sends.push_back(each);
    rank.note(input).send = static_cast<std::uint32_t>(rank.sends.size());
  }
  return rank;
}

/// Times of a rank's collectives inside phases, those found by the rank that stood for it included.
InsideTimes NetworkSweep::inside_of(std::uint32_t r) const {
  InsideTimes found;
  if (before_ != nullptr) found = before_->inside_of(early_.rank(r));
  const auto append = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  append(found.phases, ranks_[r].inside_times.phases);
  append(found.starts, ranks_[r].inside_times.starts);
  append(found.ends, ranks_[r].inside_times.ends);
  append(found.units, unit_entries_[traffic_.ranks[r].unit]);
  return found;
}

}  // namespace orrery::models::traffic
