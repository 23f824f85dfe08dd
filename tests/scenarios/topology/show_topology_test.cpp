#include <catch2/catch.hpp>

#include "tests/scenarios/command.hpp"

namespace orrery::scenarios {
namespace {

TEST_CASE("show topology prints, draws and refuses") {
  const Scratch scratch;
  const Ran drawn = orrery("show topology 'dgx-h100 x 16' --svg " + scratch.path("a.svg") +
                           " --html " + scratch.path("a.html"));
  CHECK(drawn.exit_code == 0);
  CHECK(drawn.out.rfind("dgx-h100 x 16: nodes 16, GPUs 128, NICs 128 in all", 0) == 0);
  CHECK(scratch.read("a.svg").rfind("<svg", 0) == 0);
  CHECK(scratch.read("a.html").rfind("<!DOCTYPE html>", 0) == 0);
  const std::string table = scratch.write("t.txt", "GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n");
  const Ran node = orrery("show topology " + table + " --json --svg " + scratch.path("b.svg"));
  CHECK(node.exit_code == 0);
  CHECK(Document::parse(node.out, "out").json()["node"]["json"]["gpus"] == 2);
  CHECK(scratch.read("b.svg").find("gpu1") != std::string::npos);
  const Ran nothing = orrery("show topology");
  CHECK(nothing.exit_code == 2);
  CHECK(nothing.error.rfind("show topology: expected a cluster", 0) == 0);
  const Ran broken = orrery("show topology " + scratch.write("c.xml", "<system>"));
  CHECK(broken.exit_code == 2);
  CHECK(broken.error.rfind(scratch.path("c.xml") + ":line 1: ", 0) == 0);
}

}  // namespace
}  // namespace orrery::scenarios
