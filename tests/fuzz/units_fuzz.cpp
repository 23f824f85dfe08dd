// Quantities: what is read is finite, not negative, and prints.
#include "sim/input/units.hpp"

#include <cmath>

#include "tests/fuzz/fuzz.hpp"

namespace orrery {
namespace {

template <class Q>
void check(std::string_view text) {
  const auto quantity = parse_quantity<Q>(text);
  if (!quantity) return;
  const auto count = static_cast<double>(quantity->count());
  if (!std::isfinite(count) || count < 0) std::abort();
  if (format(*quantity).empty()) std::abort();
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text = text_of(data, size);
  check<Time>(text);
  check<Bytes>(text);
  check<Flops>(text);
  check<Bandwidth>(text);
  check<FlopRate>(text);
  check<Power>(text);
  check<Energy>(text);
  check<Money>(text);
  check<Price>(text);
  check<Frequency>(text);
  return 0;
}
