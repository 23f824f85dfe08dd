// Software profiles: what is read prices an operation by numbers.
#include "models/software/software.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Document document = Document::parse(text_of(data, size), "software.json");
    const models::Software software = models::read_software(document.root());
    if (!(software.gemm_derate("hopper") > 0)) std::abort();
    if (software.host.forward_launch < Time{}) std::abort();
  });
  return 0;
}
