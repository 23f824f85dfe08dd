#include "executor/module/module.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace orrery::executor {
namespace {

namespace fs = std::filesystem;

TEST_CASE("A module is looked for in the program's folder and its ../lib/orrery, nowhere else") {
  const fs::path program = fs::read_symlink("/proc/self/exe").parent_path();
  const auto paths = module_paths("liborrery_mpi.so");
  REQUIRE(paths.size() == 2);
  CHECK(paths[0] == (program / "liborrery_mpi.so").string());
  CHECK(paths[1] == (program.parent_path() / "lib" / "orrery" / "liborrery_mpi.so").string());
}

TEST_CASE("The loader's own search finds no module: not what is installed, not what lies here") {
  const Module found = load_module("libm.so.6", Symbols::own);  // every Linux has one
  CHECK(found.handle == nullptr);
  CHECK_FALSE(found.there);
  CHECK(found.why == "libm.so.6 is not installed with this orrery");
}

TEST_CASE("A module of another user is not loaded, nor one that everyone may write") {
  std::string folder = (fs::temp_directory_path() / "orrery-XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/liborrery_theirs.so";
  std::ofstream{path} << "no library";
  fs::permissions(path, fs::perms::all);
  CHECK(load_module(path, Symbols::own).why == path + " is writable by everyone");
  fs::permissions(path, fs::perms::owner_all);
  CHECK(load_module(path, Symbols::own).why == path + ": file too short");
  if (geteuid() == 0 && chown(path.c_str(), 12345, 12345) == 0) {
    CHECK(load_module(path, Symbols::own).why ==
          path + " belongs to user 12345: expected root or the owner of the program");
  }
  fs::remove_all(folder);
}

}  // namespace
}  // namespace orrery::executor
