#include "models/evaluation/traffic/traffic_events.hpp"

#include "sim/errors.hpp"

namespace orrery::models::traffic {

TrafficEvents::TrafficEvents(const Traffic& traffic)
    : traffic_{traffic},
      shares_{traffic, [this](std::uint32_t id, std::uint32_t serial, std::int64_t end) {
                push(Kind::end, id, serial, end);
              }} {
  pending_.resize(traffic.flow_classes.size());
  for (std::uint32_t link = 0; link < traffic.link_classes.size(); ++link) {
    const auto& changes = traffic.link_classes[link].changes;
    for (std::uint32_t k = 0; k < changes.size(); ++k) {
      push(Kind::change, link, k, changes[k].first.count());
    }
  }
}

TrafficEvents::TrafficEvents(const Traffic& traffic, const PrefixTraffic& prefix,
                             const TrafficEvents& before)
    : TrafficEvents{traffic} {
  now_ = before.now_;
  transmissions_ = before.transmissions_;
  while (!queue_.empty() && queue_.earliest() <= now_) {  // `shares_.resume` applies these changes
    queue_.advance(queue_.earliest());
    queue_.pop();
  }
  queue_.advance(now_);
  std::vector<std::vector<std::uint32_t>> stood_for(before.pending_.size());
  for (std::uint32_t id = 0; id < pending_.size(); ++id) {
    pending_[id] = before.pending_[prefix.flow_classes[id]];
    stood_for[prefix.flow_classes[id]].push_back(id);
  }
  before.queue_.each([&](const RadixHeap::Entry& entry) {
    const auto [kind, id] = event(entry.payload);
    if (kind == Kind::step) push(kind, id, 0, entry.time);
    if (kind != Kind::start) return;
    for (const std::uint32_t each : stood_for[id]) push(Kind::start, each, 0, entry.time);
  });
  shares_.resume(before.shares_, prefix, now_);
}

TrafficEvents::Occurrence TrafficEvents::event(std::uint64_t payload) {
  return {static_cast<Kind>(payload >> 62),
          static_cast<std::uint32_t>(payload >> 32) & 0x3fffffffU};
}

void TrafficEvents::begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid) {
  ensure(start >= now_, "traffic became ready in the past");
  ++transmissions_;
  pending_[id] = fluid;
  push(Kind::start, id, 0, start + latency.count());
}

void TrafficEvents::advance(std::int64_t to) {
  now_ = to;
  queue_.advance(to);
}

void TrafficEvents::push(Kind kind, std::uint32_t id, std::uint32_t serial, std::int64_t at) {
  const auto tag = static_cast<std::uint64_t>(kind) << 62 | std::uint64_t{id} << 32 | serial;
  queue_.push({at, tag});
}

TrafficEvents::Occurrence TrafficEvents::next() {
  const std::uint64_t payload = queue_.pop().payload;
  const auto [kind, id] = event(payload);
  const auto serial = static_cast<std::uint32_t>(payload);
  if (kind == Kind::change) {
    shares_.change(id, traffic_.link_classes[id].changes[serial].second);
  } else if (kind == Kind::start) {
    shares_.start(id, now_, pending_[id]);
  } else if (kind == Kind::end) {
    if (!shares_.due(id, serial)) return {Kind::change, id};
    shares_.end(id, now_);
  }
  return {kind, id};
}

}  // namespace orrery::models::traffic
