// Cluster files: what is read has a size, and reads the same once it is expanded.
#include "hardware/catalogue.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Document document = Document::parse(text_of(data, size), "cluster.json");
    const Document expanded =
        Document::from(hardware::expand_cluster(document.root()), "expanded.json");
    const hardware::Cluster cluster = hardware::read_cluster(expanded.root());
    if (cluster.gpus() < 1) std::abort();
    if (hardware::expand_cluster(expanded.root()) != expanded.json()) std::abort();
  });
  return 0;
}
