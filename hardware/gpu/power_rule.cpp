#include "hardware/gpu/power_rule.hpp"

#include <algorithm>
#include <cmath>

#include "hardware/reading.hpp"

namespace orrery::hardware {

namespace {

EnergyPerFlop read_power_per_flop(const Node& node) {
  return EnergyPerFlop{within(node, 0.01, 1000)};
}

PowerRule::StatedPeer read_peer(const Node& node) {
  node.only({"gpu", "share", "pj_per_flop"});
  PowerRule::StatedPeer peer{.gpu = node["gpu"].as<std::string>(), .share = {}, .power = {}};
  if (const auto stated = node.find("share")) peer.share = share(*stated);
  if (const auto stated = node.find("pj_per_flop")) peer.power = read_power_per_flop(*stated);
  return peer;
}

PowerRule read_rule(const Node& node) {
  node.only({"silicon", "peer", "exponent", "plentiful_pj_per_flop", "cap", "spread",
             "attention_over_gemm", "gemm_overhead", "formats"});
  PowerRule rule;
  rule.silicon = node["silicon"].as<std::string>();
  if (const auto peer = node.find("peer")) rule.peer = read_peer(*peer);
  rule.exponent = within(node["exponent"], 0, 2);
  rule.plentiful = read_power_per_flop(node["plentiful_pj_per_flop"]);
  rule.cap = share(node["cap"]);
  rule.spread = within(node["spread"], 0, 2);
  if (const auto over = node.find("attention_over_gemm")) rule.attention = share(*over);
  if (const auto start = node.find("gemm_overhead")) rule.gemm_overhead = start->as<Time>();
  if (const auto formats = node.find("formats")) {
    for (const auto& [format, stated] : formats->members()) {
      rule.formats[read_format(format, stated)] = share(stated);
    }
  }
  return rule;
}

}  // namespace

std::vector<PowerRule> read_power_rules(const Node& rules) {
  std::vector<PowerRule> read;
  for (const Node& rule : rules.elements()) read.push_back(read_rule(rule));
  return read;
}

double power_factor(const PowerRule& rule, EnergyPerFlop from, EnergyPerFlop to) {
  const double before = std::min(from, rule.plentiful).count();
  const double after = std::min(to, rule.plentiful).count();
  return std::pow(after / before, rule.exponent);
}

std::optional<double> sustained_share(const PowerRule& rule, const std::optional<PowerPeer>& peer,
                                      EnergyPerFlop power) {
  if (power >= rule.plentiful) return rule.cap;
  if (!peer) return std::nullopt;
  return std::min(rule.cap, peer->share * power_factor(rule, peer->power, power));
}

double sustained_spread(const PowerRule& rule, const std::optional<PowerPeer>& peer,
                        EnergyPerFlop power) {
  constexpr double far = 0.2;
  if (!peer) return rule.spread;
  const double away = std::abs(std::log(power.count() / peer->power.count()));
  return rule.spread * std::min(1.0, away / far);
}

}  // namespace orrery::hardware
