#include "tests/arrows/arrows.hpp"

#include <stdlib.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "tests/arrows/type_names.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// A source tree of a few files that goes away with the test.
class Tree {
 public:
  Tree() {
    std::string pattern = (fs::temp_directory_path() / "orrery-arrows-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void add(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream{root_ / path} << text;
  }
  const fs::path& root() const { return root_; }

 private:
  fs::path root_;
};

TEST_CASE("Every include of the project points the way of the folder table") {
  CHECK(broken_rules(ORRERY_SOURCE) == std::vector<std::string>{});
}

TEST_CASE("No folder holds more sources than a reader takes in: forty") {
  std::map<std::string, int> sources;
  for (const char* folder :
       {"sim", "hardware", "models", "scenarios", "executor", "calibrate", "python"}) {
    for (const auto& entry : fs::recursive_directory_iterator{fs::path{ORRERY_SOURCE} / folder}) {
      const std::string end = entry.path().extension().string();
      const bool source = end == ".cpp" || end == ".hpp" || end == ".cu" || end == ".py";
      if (source) ++sources[entry.path().parent_path().string()];
    }
  }
  REQUIRE(sources.size() > 50);
  for (const auto& [folder, count] : sources) {
    INFO(folder);
    CHECK(count <= 40);
  }
}

TEST_CASE("The project's own sources are what is read") {
  REQUIRE(fs::exists(fs::path{ORRERY_SOURCE} / "sim/quantity.hpp"));
}

TEST_CASE("An include against the table is found with its line") {
  const Tree tree;
  tree.add("sim/a.hpp", "#pragma once\n#include \"models/plan/plan.hpp\"\n");
  tree.add("hardware/b.cpp", "#include \"sim/quantity.hpp\"\n  #  include \"scenarios/x.hpp\"\n");
  tree.add("models/c.cpp",
           "#include \"hardware/gpu/gpu.hpp\"\n#include \"executor/device/device.hpp\"\n");
  tree.add("calibrate/d.cu", "#include \"scenarios/run.hpp\"\n");
  tree.add("executor/e.cpp", "#include \"scenarios/run.hpp\"\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{"calibrate/d.cu:1: may not include scenarios/",
                                 "executor/e.cpp:1: may not include scenarios/",
                                 "hardware/b.cpp:2: may not include scenarios/",
                                 "models/c.cpp:2: may not include executor/",
                                 "sim/a.hpp:2: may not include models/"});
}

TEST_CASE("Includes with the arrows, and the command's of every folder, are allowed") {
  const Tree tree;
  tree.add("models/a.cpp", "#include <vector>\n#include \"sim/quantity.hpp\"\n");
  tree.add("calibrate/b.cu",
           "#include <cuda_runtime.h>\n#include \"executor/device/device.hpp\"\n");
  tree.add("scenarios/command/c.cpp",
           "#include \"executor/run.hpp\"\n#include \"calibrate/fit.hpp\"\nstd::cout << 1;\n");
  tree.add("models/d.cpp", "// never: #include \"scenarios/x.hpp\", std::cout\n");
  tree.add("tests/e.cpp", "#include \"scenarios/x.hpp\"\n");
  CHECK(broken_rules(tree.root()) == std::vector<std::string>{});
}

TEST_CASE("What reads a finished Program asks neither the plan nor the lowering") {
  const Tree tree;
  tree.add("executor/run/a.cpp", "#include \"models/plan/plan.hpp\"\n");
  tree.add("models/evaluation/b.hpp", "#include \"models/lowering/lower.hpp\"\n");
  tree.add("models/prediction/c.cpp", "#include \"models/lowering/lower.hpp\"\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{
            "executor/run/a.cpp:1: reads finished Programs, and may not include "
            "\"models/plan/plan.hpp\"",
            "models/evaluation/b.hpp:1: reads finished Programs, and may not include "
            "\"models/lowering/lower.hpp\""});
}

TEST_CASE("A subfolder includes only what its row names, and subfolders' rows have no cycle") {
  const Tree tree;
  tree.add("models/schedules/a.hpp", "#include \"models/plan/plan.hpp\"\n");
  tree.add("models/plan/b.cpp", "#include \"models/program/program.hpp\"\n");
  tree.add("scenarios/report/h.cpp", "#include \"scenarios/search/query.hpp\"\n");
  tree.add("scenarios/search/i.cpp", "#include \"scenarios/command/commands.hpp\"\n");
  tree.add("executor/launch/c.cpp", "#include \"executor/errors.hpp\"\n");
  tree.add("executor/launch/d.cpp", "#include \"executor/run/runner.hpp\"\n");
  tree.add("executor/e.hpp", "#include \"executor/launch/store.hpp\"\n");
  tree.add("executor/new/f.hpp", "#include \"executor/launch/store.hpp\"\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{
            "executor/e.hpp:1: what lies in no subfolder may not include executor/launch/",
            "executor/launch/d.cpp:1: executor/launch/ may not include executor/run/",
            "executor/new/f.hpp:1: executor/new/ may not include executor/launch/",
            "models/schedules/a.hpp:1: models/schedules/ may not include models/plan/",
            "scenarios/report/h.cpp:1: scenarios/report/ may not include scenarios/search/",
            "scenarios/search/i.cpp:1: scenarios/search/ may not include scenarios/command/"});
  CHECK(subfolder_cycle().empty());
}

TEST_CASE("A type's name stands in one subfolder of the project only") {
  CHECK(shared_type_names(ORRERY_SOURCE) == std::vector<std::string>{});
}

TEST_CASE(
    "Types of two subfolders that share a name are found, uses and declarations ahead are not") {
  const Tree tree;
  tree.add("sim/a.hpp", "class Wire {\n};\nstruct Ahead;\nenum class Kind : int {\n");
  tree.add("models/plan/b.hpp", "struct Wire final : Base {\n};\nstruct Ahead;\nWire wire{\n");
  tree.add("models/plan/c.cpp", "  struct Own {\n};\n");
  tree.add("models/plan/d.cpp", "template <class T>\nstruct Own {\n};\n");
  CHECK(shared_type_names(tree.root()) ==
        std::vector<std::string>{"Wire: models/plan/b.hpp, sim/a.hpp"});
}

TEST_CASE("CUDA headers stay in calibrate and executor") {
  const Tree tree;
  tree.add("hardware/a.cpp", "#include <cuda_runtime.h>\n#include <nccl.h>\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{"hardware/a.cpp:1: CUDA outside calibrate/ and executor/",
                                 "hardware/a.cpp:2: CUDA outside calibrate/ and executor/"});
}

TEST_CASE("A library that prints or exits is found") {
  const Tree tree;
  tree.add("sim/a.cpp", "std::cout << 1;\nstd::exit(1);\nfmt::print(\"x\");\nsnprintf(a, 1);\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{"sim/a.cpp:1: a library neither prints nor exits: std::cout",
                                 "sim/a.cpp:2: a library neither prints nor exits: std::exit",
                                 "sim/a.cpp:3: a library neither prints nor exits: fmt::print("});
}

TEST_CASE("An include that does not start at the root is found") {
  const Tree tree;
  tree.add("sim/input/a.cpp", "#include \"document.hpp\"\n");
  CHECK(broken_rules(tree.root()) ==
        std::vector<std::string>{
            "sim/input/a.cpp:1: includes \"document.hpp\", not written from the root"});
}

}  // namespace
}  // namespace orrery
