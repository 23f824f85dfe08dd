#include "hardware/cluster/recognise.hpp"

#include <catch2/catch.hpp>

namespace orrery::hardware {
namespace {

constexpr std::int64_t mib = 1 << 20;

std::string entry(std::string_view reported, std::int64_t mebibytes) {
  return recognised_gpu(reported, Bytes{mebibytes * mib}).value_or("none");
}

// Names as nvidia-smi prints them, with the memory that it prints next to them.
TEST_CASE("A GPU is found in the catalogue by what its driver calls it") {
  CHECK(entry("NVIDIA H100 80GB HBM3", 81559) == "h100-sxm-80gb");
  CHECK(entry("NVIDIA H100 PCIe", 81559) == "h100-pcie-80gb");
  CHECK(entry("NVIDIA H100 NVL", 95830) == "h100-nvl-94gb");
  CHECK(entry("NVIDIA H200", 143771) == "h200-sxm-141gb");
  CHECK(entry("NVIDIA H200 NVL", 143771) == "h200-nvl-141gb");
  CHECK(entry("NVIDIA GH200 480GB", 97871) == "gh200-96gb");
  CHECK(entry("NVIDIA A100-SXM4-80GB", 81251) == "a100-sxm-80gb");
  CHECK(entry("NVIDIA A100-SXM4-40GB", 40960) == "a100-sxm-40gb");
  CHECK(entry("NVIDIA A100 80GB PCIe", 81251) == "a100-pcie-80gb");
  CHECK(entry("NVIDIA B200", 183359) == "b200-sxm");
  CHECK(entry("NVIDIA GeForce RTX 4090", 24564) == "rtx-4090");
  CHECK(entry("NVIDIA L40S", 46068) == "l40s");
  CHECK(entry("NVIDIA L40", 46068) == "l40");
  CHECK(entry("NVIDIA A10G", 23028) == "a10g");
  CHECK(entry("NVIDIA RTX A6000", 49140) == "rtx-a6000");
  CHECK(entry("NVIDIA RTX PRO 6000 Blackwell Server Edition", 97887) == "rtx-pro-6000");
  CHECK(entry("NVIDIA GeForce RTX 3060", 12288) == "none");
}

TEST_CASE("Of the nodes with a GPU the most ordinary one is taken") {
  CHECK(node_with("h200-sxm-141gb") == "hgx-h200");
  CHECK(node_with("h100-pcie-80gb") == "h100-pcie-8x");
  CHECK(node_with("b300-sxm") == "dgx-b300");
  CHECK(node_with("rtx-4090") == "rtx-4090-8x");
  CHECK_FALSE(node_with("rtx-3080").has_value());
}

}  // namespace
}  // namespace orrery::hardware
