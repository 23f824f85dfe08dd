// Traces: what is read starts at 0 or later, and reads the same once it is written.
#include "sim/trace/chrome.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery {
namespace {

std::string written(const Trace& trace) {
  std::string text;
  write_chrome(trace, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Trace trace = read_chrome(Document::parse(text_of(data, size), "trace.json"));
    const std::string once = written(trace);
    const std::string again = written(read_chrome(Document::parse(once, "again.json")));
    if (again != once) std::abort();
  });
  return 0;
}
