#include "models/evaluation/traffic/wires.hpp"

#include "sim/errors.hpp"

namespace orrery::models::traffic {

Wires::Wires(const Traffic& traffic)
    : traffic_{traffic},
      shares_{traffic, [this](std::uint32_t id, std::uint32_t serial, std::int64_t end) {
                push(Event::end, id, serial, end);
              }} {
  pending_.resize(traffic.templates.size());
  for (std::uint32_t row = 0; row < traffic.rows.size(); ++row) {
    for (std::uint32_t k = 0; k < traffic.rows[row].changes.size(); ++k) {
      push(Event::change, row, k, traffic.rows[row].changes[k].first.count());
    }
  }
}

Wires::Wires(const Traffic& traffic, const EarlyTraffic& early, const Wires& before)
    : Wires{traffic} {
  now_ = before.now_;
  items_ = before.items_;
  while (!events_.empty() && events_.earliest() <= now_) {  // `shares_.go_on` applies these changes
    events_.advance(events_.earliest());
    events_.pop();
  }
  events_.advance(now_);
  std::vector<std::vector<std::uint32_t>> stood_for(before.pending_.size());
  for (std::uint32_t id = 0; id < pending_.size(); ++id) {
    pending_[id] = before.pending_[early.templates[id]];
    stood_for[early.templates[id]].push_back(id);
  }
  before.events_.each([&](const RadixHeap::Entry& entry) {
    const auto [kind, id] = happening(entry.payload);
    if (kind == Event::step) push(kind, id, 0, entry.time);
    if (kind != Event::start) return;
    for (const std::uint32_t each : stood_for[id]) push(Event::start, each, 0, entry.time);
  });
  shares_.go_on(before.shares_, early, now_);
}

Wires::Happening Wires::happening(std::uint64_t payload) {
  return {static_cast<Event>(payload >> 62),
          static_cast<std::uint32_t>(payload >> 32) & 0x3fffffffU};
}

void Wires::begin(std::uint32_t id, std::int64_t start, Time latency, Time fluid) {
  ensure(start >= now_, "traffic became ready in the past");
  ++items_;
  pending_[id] = fluid;
  push(Event::start, id, 0, start + latency.count());
}

void Wires::advance(std::int64_t to) {
  now_ = to;
  events_.advance(to);
}

void Wires::push(Event kind, std::uint32_t id, std::uint32_t serial, std::int64_t at) {
  const auto tag = static_cast<std::uint64_t>(kind) << 62 | std::uint64_t{id} << 32 | serial;
  events_.push({at, tag});
}

Wires::Happening Wires::next() {
  const std::uint64_t payload = events_.pop().payload;
  const auto [kind, id] = happening(payload);
  const auto serial = static_cast<std::uint32_t>(payload);
  if (kind == Event::change) {
    shares_.change(id, traffic_.rows[id].changes[serial].second);
  } else if (kind == Event::start) {
    shares_.start(id, now_, pending_[id]);
  } else if (kind == Event::end) {
    if (!shares_.due(id, serial)) return {Event::change, id};
    shares_.end(id, now_);
  }
  return {kind, id};
}

}  // namespace orrery::models::traffic
