#include "models/lowering/reshard.hpp"

#include <catch2/catch.hpp>

#include "models/lowering/lower.hpp"

using namespace orrery;
using namespace orrery::models;

namespace {

/// Four context ranks, and a communicator for each of two axes.
struct World {
  Mesh mesh{2, 1, 1, 4};
  std::vector<Communicator> communicators{
      {"tp", CommunicatorRole::tensor, MeshAxis::tensor, {}, Lane::tensor, TimeClass::tp},
      {"cp", CommunicatorRole::context, MeshAxis::context, {}, Lane::context, TimeClass::cp}};

  Resharding how() const { return {mesh, communicators}; }
};

Sharding cut(Dimension dimension) {
  return {MeshAxis::context, dimension};
}
Sharding partial() {
  Sharding sum;
  sum.partial = MeshAxis::context;
  return sum;
}

/// y = op(x), both [16, 8] in fp32 and held as said; op makes y so.
Block toy(const World& world, const Sharding& held, const Sharding& made) {
  Block block;
  const auto operand = [&](const char* name, Role role) {
    Operand each{name, role, DType::fp32};
    each.uncut = {1, 16, 8};
    each.sharding = held;
    each.shape = local_shape(each.uncut, held, world.mesh);
    block.operands.push_back(each);
  };
  operand("x", Role::input);
  operand("y", Role::output);
  Operation op;
  op.name = "op";
  op.reads = {0};
  op.writes = {1};
  if (made != held) op.makes = {{1, made}};
  block.operations = {op};
  reshard(block, world.how());
  return block;
}

/// The same, but op needs x in another layout.
Block needing(const World& world, const Sharding& held, const Sharding& needed) {
  Block block = toy(world, held, held);
  block.operations.front().needs = {{0, needed}};
  reshard(block, world.how());
  return block;
}

const Operand& of(const Block& block, OperandId id) {
  return block.operands[id];
}

}  // namespace

TEST_CASE("Partial sums that are held whole are all-reduced in place") {
  const Block block = toy({}, {}, partial());
  REQUIRE(block.operations.size() == 2);
  const Operation& sum = block.operations[1];
  CHECK(sum.name == "op.sum");
  CHECK(sum.collective() == Collective::all_reduce);
  CHECK(sum.reads == sum.writes);
  CHECK(of(block, sum.writes[0]).name == "y");
  CHECK(sum.bytes == Bytes{16 * 8 * 4});
}

TEST_CASE("Partial sums that are held cut are reduce-scattered") {
  const Block block = toy({}, cut(Dimension::rows), partial());
  REQUIRE(block.operations.size() == 2);
  const Operation& sum = block.operations[1];
  CHECK(sum.collective() == Collective::reduce_scatter);
  CHECK(of(block, sum.reads[0]).shape == Shape{1, 16, 8});
  CHECK(of(block, sum.writes[0]).shape == Shape{1, 4, 8});
  CHECK(block.operations[0].writes == sum.reads);
  CHECK(sum.bytes == Bytes{16 * 8 * 4});  // as nccl-tests counts: the larger side
}

TEST_CASE("What is held cut and needed whole is gathered") {
  const Block block = needing({}, cut(Dimension::rows), {});
  REQUIRE(block.operations.size() == 2);
  const Operation& gather = block.operations[0];
  CHECK(gather.name == "x.gather");
  CHECK(gather.collective() == Collective::all_gather);
  CHECK(block.operations[1].reads == gather.writes);
  CHECK(of(block, gather.writes[0]).shape == Shape{1, 16, 8});
  CHECK(gather.bytes == Bytes{16 * 8 * 4});
}

TEST_CASE("What is held cut by rows and needed cut by columns goes through an all-to-all") {
  // As Ulysses does with a sequence before attention, and back after it.
  const Block there = needing({}, cut(Dimension::rows), cut(Dimension::columns));
  REQUIRE(there.operations.size() == 2);
  const Operation& exchange = there.operations[0];
  CHECK(exchange.collective() == Collective::all_to_all);
  CHECK(of(there, exchange.reads[0]).shape == Shape{1, 4, 8});
  CHECK(of(there, exchange.writes[0]).shape == Shape{1, 16, 2});
  const Block back = toy({}, cut(Dimension::rows), cut(Dimension::columns));
  REQUIRE(back.operations.size() == 2);
  CHECK(back.operations[1].collective() == Collective::all_to_all);
  CHECK(of(back, back.operations[1].writes[0]).name == "y");
}

TEST_CASE("Communicator, lane and time class are the axis's") {
  const World world;
  const Operation context = needing(world, cut(Dimension::rows), {}).operations[0];
  CHECK(context.communicator() == 1);
  CHECK(context.queue == Lane::context);
  CHECK(context.time_class == TimeClass::cp);
  const Operation tensor = needing(world, {MeshAxis::tensor, Dimension::rows}, {}).operations[0];
  CHECK(tensor.communicator() == 0);
  CHECK(tensor.queue == Lane::tensor);
  CHECK(tensor.time_class == TimeClass::tp);
}

TEST_CASE("An operand cut by two axes is gathered from the innermost out") {
  Sharding both = cut(Dimension::rows);
  both.cut(MeshAxis::tensor) = Cut{Dimension::rows};
  const Block block = needing({}, both, {});
  REQUIRE(block.operations.size() == 3);
  CHECK(block.operations[0].communicator() == 0);
  CHECK(of(block, block.operations[0].writes[0]).shape == Shape{1, 4, 8});
  CHECK(block.operations[1].communicator() == 1);
  CHECK(of(block, block.operations[1].writes[0]).shape == Shape{1, 16, 8});
}

TEST_CASE("What no collective makes is refused") {
  CHECK_THROWS_WITH(needing({}, {}, cut(Dimension::rows)),
                    Catch::Contains("no collective makes 'cp:rows' of 'whole'"));
  CHECK_THROWS_WITH(needing({}, {}, partial()),
                    Catch::Contains("no collective makes 'partial:cp' of 'whole'"));
  CHECK_THROWS_WITH(needing({}, {MeshAxis::expert, Dimension::rows}, {}),
                    Catch::Contains("the axis expert has no communicator"));
}
