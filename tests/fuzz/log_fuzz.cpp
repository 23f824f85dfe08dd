// Others' logs: whatever is imported is a finite number, and prints.
#include <cmath>

#include "calibrate/import/import.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::calibrate {
namespace {

void check(const Sample& sample) {
  const double* number = std::get_if<double>(&sample.value);
  const Bandwidth* rate = std::get_if<Bandwidth>(&sample.value);
  if (!std::isfinite(number ? *number : rate ? rate->count() : 0)) std::abort();
  if (sample.size && sample.size->count() < 0) std::abort();
  if (sample.ranks && *sample.ranks < 1) std::abort();
  if (to_json(sample).dump().empty()) std::abort();
}

}  // namespace
}  // namespace orrery::calibrate

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  survives([&] {
    const calibrate::Imported log = calibrate::import_text(text_of(data, size), "fuzz.log");
    for (const calibrate::Sample& each : log.samples) calibrate::check(each);
  });
  return 0;
}
