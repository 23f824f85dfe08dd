// What no kernel is needed for; its header is the device's, so it is asked where kernels are
// emulated.
#ifdef ORRERY_EMULATED

#include <catch2/catch.hpp>
#include <set>
#include <utility>

#include "executor/device/cuda/attention/flash_tiles.hpp"

namespace orrery::executor::cuda {
namespace {

TEST_CASE("Blocks of fused attention take every tile of every head once, section by section") {
  // Seven heads in sections of four: 3 x 4 blocks, then 3 x 3.
  const Order order{.tiles = 3, .heads = 7, .section = 4};
  std::set<std::pair<int, int>> taken;
  for (int block = 0; block < 3 * 7; ++block) {
    const Order::Piece piece = order.of(block);
    taken.emplace(piece.tile, piece.head);
    CHECK((piece.head < 4) == (block < 12));
    CHECK(piece.tile == (block < 12 ? block / 4 : (block - 12) / 3));
  }
  CHECK(taken.size() == 21);
  CHECK(taken.begin()->first == 0);
  CHECK(taken.rbegin()->first == 2);
}

TEST_CASE("A section has the heads whose keys and values fit the cache") {
  // 20 MB hold three times 6 MB, each read by four query heads; and never less than one.
  CHECK(Order::of_heads(5, 64, 4, 6'000'000).section == 12);
  CHECK(Order::of_heads(5, 64, 4, 50'000'000).section == 4);
  CHECK(Order::of_heads(5, 8, 4, 1'000).section == 8);
}

TEST_CASE("A tile of queries sees what its queries see, and is seen alike") {
  // 100 tokens, causal, each seeing itself and four before it.
  const AttentionMask near{.seq = 100, .window = 5, .causal = true};
  CHECK(near.keys_of(FlashSpan{64, 128}).first == 60);
  CHECK(near.keys_of(FlashSpan{64, 128}).last == 100);
  CHECK(near.queries_of(FlashSpan{0, 64}).first == 0);
  CHECK(near.queries_of(FlashSpan{0, 64}).last == 68);  // 67 sees keys 63 to 67
  CHECK(near.all({10, 12}, {8, 11}));
  CHECK_FALSE(near.all({10, 12}, {8, 12}));  // 10 does not see 11
  CHECK_FALSE(near.all({10, 14}, {8, 11}));  // 13 sees 9 to 13
  const AttentionMask whole{.seq = 100, .window = 0, .causal = false};
  CHECK(whole.all({0, 128}, {64, 100}));
  CHECK_FALSE(whole.all({0, 128}, {64, 128}));  // there is no key 100
  for (int query = 0; query < 100; ++query) {
    for (int key = 0; key < 100; ++key) {
      const FlashSpan keys = near.keys_of(query), queries = near.queries_of(key);
      REQUIRE((key >= keys.first && key < keys.last) ==
              (query >= queries.first && query < queries.last));
    }
  }
}

}  // namespace
}  // namespace orrery::executor::cuda

#endif
