#include "sim/output/gzip.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "sim/input/gunzip.hpp"
#include "tests/sim/refusal.hpp"

namespace orrery {
namespace {

std::string gzipped(const std::vector<std::string>& pieces) {
  std::string packed;
  GzipWriter writer{[&](std::string_view piece) { packed += piece; }};
  for (const std::string& each : pieces) writer.write(each);
  writer.finish();
  return packed;
}

constexpr std::size_t gzip_limit = std::size_t{1} << 20;

TEST_CASE("What is packed piece by piece unpacks to the whole, and the same bytes come twice") {
  std::string noise;
  for (std::uint32_t i = 0, state = 1; i < 200'000; ++i) {
    state = state * 1664525 + 1013904223;  // does not compress: several buffers of output
    noise += static_cast<char>(state >> 24);
  }
  for (const std::string& text : {std::string{}, std::string(500'000, 'x'), noise}) {
    const std::string packed =
        gzipped({text.substr(0, text.size() / 3), "", text.substr(text.size() / 3)});
    CHECK(is_gzip(packed));
    CHECK(gunzipped(packed, "a.gz", gzip_limit) == text);
    CHECK(packed == gzipped({text.substr(0, text.size() / 3), "", text.substr(text.size() / 3)}));
  }
  CHECK(gzipped({std::string(500'000, 'x')}).size() < 1000);
}

TEST_CASE("A file of several members is the text of all, and zeros after it are padding") {
  const std::string two = gzipped({"one "}) + gzipped({"two"});
  CHECK(gunzipped(two, "a.gz", gzip_limit) == "one two");
  CHECK(gunzipped(two + std::string(512, '\0'), "a.gz", gzip_limit) == "one two");
}

TEST_CASE("A packed file that is damaged, cut off or too large is refused") {
  const std::string packed = gzipped({std::string(2'000'000, 'x')});
  const auto refused = [](const std::string& bytes) {
    return refusal([&] { gunzipped(bytes, "a.gz", gzip_limit); });
  };
  CHECK(refused(packed) == "a.gz: unpacked, larger than 1 MiB");
  const std::string small = gzipped({"hello, hello, hello"});
  CHECK(refused(small.substr(0, small.size() - 1)) ==
        "a.gz: is damaged: gzip cannot unpack it to its end");
  std::string wrong = small;
  wrong[wrong.size() - 8] ^= 1;  // the check sum
  CHECK(refused(wrong) == "a.gz: is damaged: gzip cannot unpack it");
}

}  // namespace
}  // namespace orrery
