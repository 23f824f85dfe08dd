// What the NCCL fabric decides before it calls NCCL.

#include "executor/fabric/nccl/nccl_rules.hpp"

#include <catch2/catch.hpp>

namespace orrery::executor::cuda {
namespace {

using models::Collective;

TEST_CASE("Both ends of a transfer take one way, and two that cross take two") {
  const TransferCall to_one{.group = 4, .peer = 1}, to_zero{.group = 4, .peer = 0};
  const TransferDirection down{4, 0, 1}, up{4, 1, 0};
  CHECK((direction_of(to_one, 0, true) == down));
  CHECK((direction_of(to_zero, 1, false) == down));
  CHECK((direction_of(to_zero, 1, true) == up));
  CHECK((direction_of(to_one, 0, false) == up));
  CHECK(key_of(down) == "nccl/way/4/0/1");
  CHECK(key_of(GroupId{4}) == "nccl/group/4");
}

TEST_CASE("A collective's ends lie apart, or meet where a call in place has them") {
  std::byte memory[64] = {};
  const auto sound = [&](Collective kind, std::int64_t send, std::int64_t receive,
                         std::int64_t index = 1) {
    require_sound({.kind = kind,
                   .send = memory + send,
                   .receive = memory + receive,
                   .count = 2,
                   .element = Element::fp32},
                  3, index);
  };
  // Two elements of 4 bytes, three members: shards of 8 bytes, 24 in all; member 1's begins at 8.
  CHECK_NOTHROW(sound(Collective::all_reduce, 0, 0));
  CHECK_NOTHROW(sound(Collective::all_reduce, 0, 8));
  CHECK_THROWS_WITH(sound(Collective::all_reduce, 0, 4), "a collective's ends overlap");
  CHECK_NOTHROW(sound(Collective::all_gather, 8, 0));
  CHECK_NOTHROW(sound(Collective::all_gather, 24, 0));
  CHECK_THROWS_WITH(sound(Collective::all_gather, 0, 0), "a collective's ends overlap");
  CHECK_NOTHROW(sound(Collective::all_gather, 0, 0, 0));
  CHECK_NOTHROW(sound(Collective::reduce_scatter, 0, 8));
  CHECK_NOTHROW(sound(Collective::reduce_scatter, 0, 24));
  CHECK_THROWS_WITH(sound(Collective::reduce_scatter, 0, 16), "a collective's ends overlap");
  CHECK_NOTHROW(sound(Collective::all_to_all, 0, 0));
  CHECK_THROWS_WITH(sound(Collective::all_to_all, 0, 16), "a collective's ends overlap");
  CHECK_THROWS_WITH(sound(Collective::broadcast, 0, 0, -1),
                    "a rank calls in a group that it is no member of");
  CHECK_THROWS_WITH(sound(Collective::reduce, 0, 0), "NCCL has no such collective");
}

TEST_CASE("Bytes are carried and not added, and a root is a member") {
  const auto sound = [](Collective kind, Element element, int root) {
    require_sound({.kind = kind, .count = 0, .element = element, .root = root}, 2, 0);
  };
  CHECK_NOTHROW(sound(Collective::all_gather, Element::byte, 0));
  CHECK_NOTHROW(sound(Collective::all_reduce, Element::ring, 0));
  CHECK_THROWS_WITH(sound(Collective::all_reduce, Element::byte, 0), "bytes are not added");
  CHECK_THROWS_WITH(sound(Collective::reduce_scatter, Element::byte, 0), "bytes are not added");
  CHECK_THROWS_WITH(sound(Collective::broadcast, Element::byte, 2),
                    "the root of a broadcast lies outside its group");
}

TEST_CASE("Two ranks on one GPU are reported before NCCL refuses them") {
  const GpuPlace one{"boot-1", "node-1", "0000:65:00.0"};
  const GpuPlace next{"boot-1", "node-1", "0000:66:00.0"};
  const GpuPlace elsewhere{"boot-2", "node-2", "0000:65:00.0"};
  const GpuPlace parsed = parse_gpu_place(text_of(one));
  CHECK(parsed.machine == "boot-1");
  CHECK(parsed.host == "node-1");
  CHECK(parsed.bus == "0000:65:00.0");
  CHECK(shared_gpu({one, next, elsewhere}, 22809, false).empty());
  CHECK(shared_gpu({one, elsewhere, next, one}, 22809, true) ==
        "ranks 0 and 3 share GPU 0000:65:00.0 of node-1, and NCCL 2.28.9 supports only one rank "
        "per GPU: start fewer ranks, or use --fabric tcp");
  CHECK(shared_gpu({one, one}, 23007, false) ==
        "ranks 0 and 1 share GPU 0000:65:00.0 of node-1, and NCCL 2.30.7 supports only one rank "
        "per GPU unless NCCL_MULTI_RANK_GPU_ENABLE=1: start fewer ranks, or use --fabric tcp");
  CHECK(shared_gpu({one, one}, 23007, true).empty());
}

TEST_CASE("Streams that must not wait for each other have a connection each") {
  CHECK(shared_connections(nullptr, 8).empty());  // CUDA's own 8
  CHECK(shared_connections("32", 8).empty());
  CHECK(shared_connections("1", 5) ==
        "CUDA_DEVICE_MAX_CONNECTIONS=1 is too few for 5 streams that must not wait for each other: "
        "set it to 32, or use --fabric tcp");
}

}  // namespace
}  // namespace orrery::executor::cuda
