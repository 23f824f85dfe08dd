#include <fmt/format.h>

#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"

namespace orrery::scenarios {

namespace {

std::string_view links_in_node(hardware::ScaleUp kind) {
  switch (kind) {
    case hardware::ScaleUp::xgmi:
      return "xGMI";
    case hardware::ScaleUp::pcie:
      return "PCIe";
    default:
      return "NVLink";
  }
}

}  // namespace

std::string busy_section(const ReportInputs& in) {
  constexpr std::size_t width = 30;
  const auto line = [&](std::string_view name, double share) {
    return fmt::format("  {:<8}{:>8}   {}\n", name, percent(share), bar(0, share, width));
  };
  const models::Busy& busy = in.prediction.busy;
  return heading("Busy in the slowest rank's step", in.options) + line("NIC", busy.nic) +
         line(links_in_node(in.question.cluster.node.scale_up), busy.nvlink) +
         line("SMs", busy.sm) +
         legend(
             "NIC and links: the time of the bytes at the rate that each collective reaches, "
             "without latencies, on the share of the node's NICs that its group uses; SMs: kernels "
             "of the compute queue",
             in.options);
}

}  // namespace orrery::scenarios
