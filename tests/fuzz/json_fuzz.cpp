// JSON documents: what is read prints and reads back the same, and every value has an address.
#include "sim/input/document.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery {
namespace {

void visit(const Node& node) {
  survives([&] { node.as<std::int64_t>(); });
  survives([&] { node.as<double>(); });
  survives([&] { node.as<Bandwidth>(); });
  survives([&] { node.integer(0, 8); });
  survives([&] { node.fail_expected("nothing"); });
  if (node.is_object()) {
    survives([&] { node.only({"cluster", "bandwidth", "latency"}); });
    for (const auto& member : node.members()) visit(member.second);
  } else if (node.is_array()) {
    for (const Node& element : node.elements()) visit(element);
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Document document = Document::parse(text_of(data, size), "fuzz.json");
    visit(document.root());
    const Document again = Document::parse(document.json().dump(), "again.json");
    if (again.json() != document.json()) std::abort();
  });
  return 0;
}
