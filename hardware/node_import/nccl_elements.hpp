#pragma once
// Reads elements of NCCL's topology XML: rates of links, names of devices.

#include <boost/property_tree/ptree.hpp>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "sim/quantity.hpp"

namespace orrery::hardware {

using XmlTree = boost::property_tree::ptree;

/// Errors  not XML, tags deeper than 64 levels, document types and CDATA: InputError with `name`
/// and the line
XmlTree xml_tree(std::string_view text, const std::string& name);

/// The text of an attribute, empty if the element has none.
std::string attribute_of(const XmlTree& element, const std::string& key);

/// Bandwidth of a PCIe device's link, per direction: rate of a lane times lanes, 16 if not stated.
/// Source  NCCL, src/graph/topo.cc, kvDictPciGen: 15 to 480 x 100 Mb/s a lane; over 80 in GB/s
Bandwidth pcie_rate(const XmlTree& pci);

/// Bandwidth between two sockets. Source  NCCL, src/graph/topo.h and topo.cc, ncclTopoGetInterCpuBw
Bandwidth socket_rate(const XmlTree& cpu);

/// Bandwidth of one xGMI link of an architecture, "gfx90a", or "910" as older files write it.
/// Source  RCCL, src/graph/topo.h: gfx94x and gfx95x 48 GB/s, gfx90a 36, all others 24; archinfo.cc
Bandwidth xgmi_rate(std::string_view architecture);

/// Bandwidth of one NVLink by CUDA compute capability times ten. Source  NCCL, src/graph/topo.h
Bandwidth nvlink_rate(int capability);

/// Bandwidth of one NVLink or xGMI link of a `gpu` element.
Bandwidth gpu_link_rate(const XmlTree& gpu, bool xgmi);

/// Catalogue name of a GPU by its PCI vendor and device id, empty if not known; half an MI250X is a
/// device and has no entry.
/// Source  the PCI ID repository, pci.ids of 2023-04-10; MI300X: RCCL's topo_8p_940
std::string gpu_of_device(const std::string& vendor, const std::string& device);

}  // namespace orrery::hardware
