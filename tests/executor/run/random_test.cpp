#include "executor/run/weights/random.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "executor/run/settings.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {
namespace {

TEST_CASE("Philox gives the numbers of its authors") {
  // Source  kat_vectors of the Random123 library: philox4x32, 10 rounds
  using Four = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, 0) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, ~std::uint64_t{0}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Normal numbers have mean 0 and deviation 1") {
  const RandomStream random{1, stream_number("layer0.qkv.weight")};
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal(static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
  }
  // Four standard errors: 4 / sqrt(n) and 4 sqrt(2 / n).
  CHECK(std::abs(sum / n) < 0.0127);
  CHECK(std::abs(squares / n - 1) < 0.0179);
}

TEST_CASE("Tokens are a function of step, sample and position") {
  const auto tokens = synthetic_tokens(3, 50);
  std::vector<std::int64_t> once(9), again(9), other(9);
  tokens->fill(2, 5, once);
  tokens->fill(2, 5, again);
  tokens->fill(2, 6, other);
  CHECK(once == again);
  CHECK(once != other);
  for (const std::int64_t token : once) CHECK((token >= 0 && token < 50));
}

TEST_CASE("Text is cut into samples that follow each other and share their edge") {
  const std::string path = "tokens_test.txt";
  std::ofstream{path} << "abcdefgh";
  const auto tokens = text_tokens({path}, 256, 2);
  std::vector<std::int64_t> sample(4);
  const auto letters = [&](std::int64_t step, std::int64_t of) {
    tokens->fill(step, of, sample);
    return std::string(sample.begin(), sample.end());
  };
  CHECK(letters(0, 0) == "abcd");
  CHECK(letters(0, 1) == "defg");
  CHECK(letters(1, 0) == "ghab");
  std::remove(path.c_str());
  CHECK_THROWS_WITH(text_tokens({"nowhere.txt"}, 256, 2),
                    "nowhere.txt: cannot be read: No such file or directory");
  CHECK_THROWS_WITH(text_tokens({path}, 100, 2),
                    "--data: text bytes need a vocabulary of at least 256, the model has 100");
}

}  // namespace
}  // namespace orrery::executor
