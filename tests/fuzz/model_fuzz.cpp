// Model configurations: what is read has sizes whose parameters can be counted.
#include "models/model/model.hpp"
#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const Document document = Document::parse(text_of(data, size), "config.json");
    const models::Model model = models::read_model(document.root());
    if (model.parameters < 0 || model.active_parameters < 0) std::abort();
    if (model.active_parameters > model.parameters) std::abort();
  });
  return 0;
}
