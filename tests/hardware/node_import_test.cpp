#include "hardware/node_import/node_import.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "hardware/catalogue.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery::hardware {
namespace {

/// Two sockets, each with a PCIe switch of two V100 and a NIC; NVLink from each GPU to two others.
std::string cube_corner() {
  const auto gpu = [](int dev, const char* bus, const char* links) {
    return "<pci busid='" + std::string{bus} +
           "' class='0x030200' vendor='0x10de' device='0x1db5' link_speed='8 GT/s' "
           "link_width='16'><gpu dev='" +
           std::to_string(dev) + "' sm='70' rank='0'>" + links + "</gpu></pci>";
  };
  const auto link = [](const char* target, int count) {
    return "<nvlink target='" + std::string{target} + "' count='" + std::to_string(count) +
           "' tclass='0x030200'/>";
  };
  const auto bridge = [](const std::string& inside, int nic) {
    return "<pci busid='b' class='0x060400' link_speed='' link_width='0'>" + inside +
           "<pci busid='n' class='0x020700' link_speed='16 GT/s' link_width='8'><nic><net name='m" +
           std::to_string(nic) + "' speed='100000'/></nic></pci></pci>";
  };
  const std::string cpu = "' arch='x86_64' vendor='GenuineIntel' familyid='6' modelid='85'>";
  return "<?xml version='1.0'?><!-- two <sockets> -->\n<system version='1'><cpu numaid='0" + cpu +
         bridge(gpu(0, "a", (link("c", 2) + link("d", 1)).c_str()) +
                    gpu(1, "e", (link("c", 1) + link("d", 2)).c_str()),
                0) +
         "</cpu><cpu numaid='1" + cpu +
         bridge(gpu(2, "c", (link("a", 2) + link("e", 1)).c_str()) +
                    gpu(3, "d", (link("a", 1) + link("e", 2)).c_str()),
                1) +
         "</cpu></system>";
}

Json json_of(const std::string& text, const std::string& name) {
  return imported_node(text, name).json;
}

Json cable(const Json& node, const std::string& one, const std::string& other) {
  for (const Json& each : node["cables"]) {
    if (each["ends"] == Json{one, other}) return each["bandwidth"];
  }
  return nullptr;
}

TEST_CASE("NCCL's topology XML is a node with its NICs and cables") {
  const Json node = json_of(cube_corner(), "corner.xml");
  CHECK(node["name"] == "corner");
  CHECK(node["gpu"] == "v100-sxm-32gb");
  CHECK(node["gpus"] == 4);
  CHECK(node["nics"] == 2);
  CHECK(node["nic_bandwidth"] == "12.5 GB/s");
  CHECK(node["scale_up"] == Json{{"kind", "mesh"}});
  CHECK(node["gpu_nics"] == Json::parse("[[0], [0], [1], [1]]"));
  // 4 NVLinks between GPUs, 4 GPUs and 2 NICs on 2 switches, these on 2 sockets, which are joined.
  CHECK(node["cables"].size() == 4 + 6 + 2 + 1);
  CHECK(cable(node, "gpu0", "gpu2") == "40 GB/s");  // two NVLinks
  CHECK(cable(node, "gpu0", "gpu3") == "20 GB/s");
  CHECK(cable(node, "gpu3", "pcie1") == "12 GB/s");  // 16 lanes at 8 GT/s
  CHECK(cable(node, "nic1", "pcie1") == "12 GB/s");  // 8 lanes at 16 GT/s
  CHECK(cable(node, "pcie1", "cpu1") == "12 GB/s");
  CHECK(cable(node, "cpu0", "cpu1") == "10 GB/s");
  CHECK_FALSE(node["sources"].empty());
}

TEST_CASE("A cluster names the file of its node where a name may stand") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "orrery-node-import-test";
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "corner.xml"} << cube_corner();
  const auto read = [&](const std::string& text) {
    const Document document = Document::parse(text, (folder / "mine.json").string());
    return read_cluster(Document::from(expand_cluster(document.root()), "mine.json").root());
  };
  const Cluster cluster = read(R"({"node": "corner.xml", "nodes": 3, "fabric":
                                   {"like": "infiniband-edr-fat-tree-2"}})");
  CHECK(cluster.gpus() == 12);
  CHECK(cluster.node.cables.size() == 13);
  CHECK(cluster.node.gpu_nics == std::vector<std::vector<int>>{{0}, {0}, {1}, {1}});
  CHECK(cluster.nic_bandwidth().count() == 12.5e9);
  CHECK(read(R"({"node": {"like": "corner.xml", "gpu": "a100-sxm-80gb"}})").gpu().name ==
        "a100-sxm-80gb");
  std::filesystem::remove_all(folder);
}

TEST_CASE("Classes of PCI devices stand in for GPUs and NICs that a provider's file leaves out") {
  const Json node = json_of(
      "<system version='1'><cpu numaid='0' vendor='AuthenticAMD'>"
      "<pci busid='s' class='0x060400' link_speed='16 GT/s' link_width='16'>"
      "<pci busid='g' class='0x030200' link_speed='16 GT/s' link_width='16'/>"
      "<pci busid='n' class='0x020700' link_speed='16 GT/s' link_width='16'/>"
      "<pci busid='m' class='0x020700' link_speed='16 GT/s' link_width='16'/>"
      "</pci></cpu></system>",
      "cloud.xml");
  CHECK(node["gpus"] == 1);
  CHECK(node["gpu_nics"] == Json::parse("[[0, 1]]"));
  CHECK_FALSE(node.contains("gpu"));
  CHECK(cable(node, "nic1", "pcie0") == "24 GB/s");
  CHECK(node["notes"] ==
        "the file does not state how GPUs are connected; the file does not state the GPU model; "
        "the file does not state the NICs' rate");
}

TEST_CASE("The table of nvidia-smi topo -m is a node, coloured or not") {
  const Json node = json_of(
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tmlx5_1\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
      "GPU0\t X \tNV18\tNV18\tPIX\tSYS\t0-55\t0\n"
      "GPU1\tNV18\t X \tNV18\tPXB\tSYS\t0-55\t0\n"
      "GPU2\tNV18\tNV18\t X \tSYS\tNODE\t56-111\t1\n"
      "NIC0\tPIX\tPXB\tSYS\t X \tSYS\n"
      "mlx5_1\tSYS\tSYS\tNODE\tSYS\t X \n\nLegend:\n\n  X    = Self\n",
      "topo.txt");
  CHECK(node["gpus"] == 3);
  CHECK(node["nics"] == 2);
  CHECK(node["scale_up"] == Json{{"kind", "nvswitch"}});
  CHECK(node["gpu_nics"] == Json::parse("[[0], [0], [1]]"));
  CHECK(cable(node, "gpu1", "nvswitch") == "370.8 GB/s");  // 18 NVLinks of an H100
  CHECK(cable(node, "gpu1", "pcie0") == "12 GB/s");
  CHECK(cable(node, "nic0", "pcie0") == "12 GB/s");
  CHECK(cable(node, "pcie2", "cpu1") == "12 GB/s");
  CHECK(cable(node, "cpu0", "cpu1") == "10 GB/s");
}

TEST_CASE("NVLinks between pairs are cables of their own, GPUs of one socket share it") {
  const Json node = json_of(
      "      GPU0 GPU1 GPU2 CPU Affinity\nGPU0  X  NV4 SYS 0-7\nGPU1 NV4  X  SYS 0-7\n"
      "GPU2 SYS SYS  X  8-15\n",
      "pairs.txt");
  CHECK(node["scale_up"] == Json{{"kind", "mesh"}});
  CHECK(cable(node, "gpu0", "gpu1") == "80 GB/s");
  CHECK(cable(node, "pcie1", "cpu0") == "12 GB/s");
  CHECK(cable(node, "pcie2", "cpu1") == "12 GB/s");
}

TEST_CASE("The rate of a table's links follows from the GPU that is stated") {
  const std::string table = "GPU0 GPU1 NIC0\nGPU0 X NV18 PIX\nGPU1 NV18 X NODE\nNIC0 PIX NODE X\n";
  const auto stated = [&](const std::string& gpu) {
    return cable(imported_node(table, "topo.txt", gpu).json, "gpu0", "gpu1");
  };
  CHECK(stated("") == "370.8 GB/s");
  CHECK(stated("h200-sxm-141gb") == "370.8 GB/s");
  CHECK(stated("b200-sxm") == "721.8 GB/s");  // 18 x 40.1, as NCCL's XML of it
  CHECK(stated("gb300") == "721.8 GB/s");
  CHECK(stated("a100-sxm-80gb") == "360 GB/s");
  CHECK(imported_node(table, "topo.txt").json["notes"] ==
        "the table states neither the GPU model nor the rates of links and NICs; NV18 is 371 GB/s "
        "on an H100 and 722 GB/s on a B200: the lowest is taken until the GPU is stated");
  CHECK(refusal([&] { stated("b2000"); }).rfind("unknown GPU 'b2000'", 0) == 0);

  // A cluster that names the file and the GPU has the same cables.
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "orrery-link-rates-test";
  std::filesystem::create_directories(folder);
  std::ofstream{folder / "topo.txt"} << table;
  const Document document = Document::parse(
      R"({"node": {"like": "./topo.txt", "gpu": "b200-sxm", "nic_bandwidth": "400 Gb/s"}})",
      (folder / "mine.json").string());
  const Cluster cluster =
      read_cluster(Document::from(expand_cluster(document.root()), "mine.json").root());
  CHECK(cluster.node.cables.front().bandwidth.count() == Approx(721.8e9));
  std::filesystem::remove_all(folder);
}

TEST_CASE("The tables of rocm-smi --showtopo are a node of GPUs joined by XGMI") {
  const std::string weights =
      "===== ROCm System Management Interface =====\n===== Weight between two GPUs =====\n"
      "       GPU0   GPU1   GPU2\nGPU0   0      15     30\nGPU1   15     0      15\n"
      "GPU2   30     15     0\n\n";
  const std::string kinds =
      "===== Link Type between two GPUs =====\n       GPU0   GPU1   GPU2\n"
      "GPU0   0      XGMI   XGMI\nGPU1   XGMI   0      XGMI\nGPU2   XGMI   XGMI   0\n";
  const std::string numa =
      "===== Numa Nodes =====\nGPU[0]\t\t: (Topology) Numa Node: 0\n"
      "GPU[0]\t\t: (Topology) Numa Affinity: 0\nGPU[1]\t\t: (Topology) Numa Node: 0\n"
      "GPU[2]\t\t: (Topology) Numa Node: 1\n";
  const Json node = json_of(weights + kinds + numa, "topo.txt");
  CHECK(node["gpus"] == 3);
  CHECK(node["nics"] == 0);
  CHECK(node["scale_up"] == Json{{"kind", "xgmi"}});
  CHECK(cable(node, "gpu0", "gpu1") == "36 GB/s");
  CHECK(cable(node, "gpu0", "gpu2").is_null());  // weight 30: by way of another GPU
  CHECK(cable(node, "gpu2", "cpu1") == "12 GB/s");
  CHECK(cable(node, "cpu0", "cpu1") == "16 GB/s");
  CHECK(cable(imported_node(kinds, "topo.txt", "mi300x").json, "gpu0", "gpu2") == "48 GB/s");

  const auto refused = [](const std::string& text) {
    return refusal([&] { imported_node(text, "f"); });
  };
  CHECK(refused(kinds.substr(0, kinds.find("GPU2   XGMI"))) ==
        "f: rocm-smi --showtopo is cut off: its table \"Link Type between two GPUs\" has 3 columns "
        "but 2 rows");
  CHECK(refused(weights) ==
        "f: rocm-smi --showtopo without its table \"Link Type between two GPUs\"");
  CHECK(refused("== Link Type between two GPUs ==\nGPU0 GPU1\nGPU0 0 NVL\n") ==
        "f:line 3: rocm-smi --showtopo: expected XGMI or PCIE at GPU1, found 'NVL'");
}

TEST_CASE("XGMI links have the rate of their generation, by either spelling") {
  const auto rate = [](const std::string& gcn) {
    const std::string gpu = "<gpu dev='0' gcn='" + gcn + "'><xgmi target='b' count='1'/></gpu>";
    return cable(json_of("<system version='2'><cpu><pci busid='a'>" + gpu +
                             "</pci><pci busid='b'><gpu dev='1'/></pci></cpu></system>",
                         "amd.xml"),
                 "gpu0", "gpu1");
  };
  CHECK(rate("906") == "24 GB/s");
  CHECK(rate("gfx908") == "24 GB/s");
  CHECK(rate("910") == "36 GB/s");
  CHECK(rate("gfx90a") == "36 GB/s");
  CHECK(rate("940") == "48 GB/s");
  CHECK(rate("gfx942") == "48 GB/s");
  CHECK(rate("gfx950") == "48 GB/s");
}

TEST_CASE("A NIC directly under a socket is joined to it at its port's rate") {
  const Json node = json_of(
      "<system version='1'><cpu><pci busid='a' link_speed='16 GT/s' link_width='16'><gpu dev='0'/>"
      "</pci><nic><net name='eth0' speed='100000'/></nic></cpu></system>",
      "cloud.xml");
  CHECK(cable(node, "nic0", "cpu0") == "12.5 GB/s");
}

TEST_CASE("Files that are no topology, or a broken one, get one clear error") {
  const auto refused = [](const std::string& text) {
    return refusal([&] { imported_node(text, "f"); });
  };
  CHECK(refused("<graphs version='1'/>") ==
        "f: is a graph that NCCL chose (NCCL_GRAPH_DUMP_FILE); expected a topology "
        "(NCCL_TOPO_DUMP_FILE)");
  CHECK(refused("<html/>") == "f: expected NCCL's topology XML with <system>");
  CHECK(refused("<system><cpu><pci busid='1'/></cpu></system>") ==
        "f: names no GPU; use a file that NCCL writes with NCCL_TOPO_DUMP_FILE, which lists them");
  CHECK(refused("<system>\n<cpu></system>").rfind("f:line 2: ", 0) == 0);
  CHECK(refused("<system>\n<cpu numaid='<'></cpu></system>") == "f:line 2: a tag inside a tag");
  CHECK(refused("<!DOCTYPE a [<!ENTITY b 'c'>]><system/>") ==
        "f:line 1: unexpected document type or CDATA");
  CHECK(refused("<system") == "f:line 1: unterminated tag");
  CHECK(refused("<!-- ") == "f:line 1: unterminated comment");
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<pci>";
  CHECK(refused(deep) == "f:line 1: more than 64 levels");
  CHECK(refused(std::string(std::size_t{2} << 20, '<')) ==
        "f: has 2097152 bytes; at most 1048576 are read");
  CHECK(refused("") == "f: is empty");
  CHECK(refused("hello") == "f: expected the table of `nvidia-smi topo -m`");
  CHECK(refused("GPU0 GPU1\nGPU0 X\n") == "f:line 2: expected 2 columns after GPU0, found 1");
  CHECK(refused("GPU0 GPU1\nGPU0 X NV4\n") == "f: 2 columns but 1 rows");
  CHECK(refused("GPU0 GPU1\nGPU0 X NV4\nGPU1 PIX X\n") ==
        "f:line 3: GPU1 to GPU0 is PIX, in the other direction NV4");
  CHECK(refused("GPU0 GPU1\nGPU0 X NW4\n") ==
        "f:line 2: expected NV#, PIX, PXB, PHB, NODE or SYS at GPU1, found 'NW4'");
  CHECK(refused("GPU0 GPU1\nGPU1 X NV4\n") == "f:line 2: expected the row of GPU0, found GPU1");
}

TEST_CASE("Cables and nearest NICs of a node's JSON are checked") {
  const auto refused = [](const std::string& members) {
    return refusal([&] {
      const Document document =
          Document::parse(R"({"node": {"like": "dgx-1-v100", )" + members + "}}", "mine.json");
      read_cluster(Document::from(expand_cluster(document.root()), "mine.json").root());
    });
  };
  const std::string place = "mine.json:/node/";
  CHECK(refused(R"("gpu_nics": [[0]])") ==
        place + "gpu_nics: expected a list of NICs for each of 8 GPUs, found 1");
  CHECK(refused(R"("gpu_nics": [[4]])") ==
        place + "gpu_nics/0/0: expected an integer from 0 to 3, found 4");
  CHECK(refused(R"("cables": [{"ends": ["gpu8", "pcie0"], "bandwidth": "12 GB/s"}])") ==
        place + "cables/0/ends/0: the node has 8 of these, found gpu8");
  CHECK(refused(R"("cables": [{"ends": ["gpu1", "gpu1"], "bandwidth": "12 GB/s"}])") ==
        place + "cables/0/ends: a cable must have two different ends");
  CHECK(refused(R"("cables": [{"ends": ["gpu1"], "bandwidth": "12 GB/s"}])") ==
        place + R"(cables/0/ends: expected the names of two ends, found ["gpu1"])");
}

}  // namespace
}  // namespace orrery::hardware
