#include "executor/module/gpu_vendors.hpp"

#include <dlfcn.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

namespace orrery::executor {
namespace {

std::string absence_of(const std::string& file) {
  const FoundGpus found = find_gpus(gpu_vendors().front(), load_module(file, Symbols::own));
  CHECK(found.module == nullptr);
  return found.absence;
}

/// The file that a function of a loaded library lies in.
std::string path_of_library(void* function) {
  Dl_info found{};
  REQUIRE(dladdr(function, &found) != 0);
  return std::filesystem::canonical(found.dli_fname).string();
}

TEST_CASE("Without its module there is no CUDA, and a sentence says so") {
  CHECK(absence_of("liborrery_nothing_of_this_name.so") ==
        "this orrery was built without CUDA; ./setup.sh --build --cuda builds it");
}

TEST_CASE("A module that does not load says which library is to blame, and why") {
  const std::string path = (std::filesystem::temp_directory_path() / "liborrery_short.so").string();
  std::ofstream{path} << "no library";
  CHECK(absence_of(path) == "the CUDA module does not load: " + path + " (file too short)");
  std::filesystem::remove(path);
  const std::string other = path_of_library(reinterpret_cast<void*>(&dlopen));
  CHECK(absence_of(other) == "the CUDA module does not load (it is another library)");
  const auto said = [](const char* why) {
    return find_gpus(gpu_vendors().front(), {nullptr, true, why}).absence;
  };
  CHECK(said("libcublasLt.so.13: cannot open shared object file: No such file or directory") ==
        "the CUDA module does not load: libcublasLt.so.13 (cannot open shared object file: No such "
        "file or directory); put the folder that holds it on LD_LIBRARY_PATH");
  CHECK(said("/opt/liborrery_cuda.so: undefined symbol: ncclCommFinalize") ==
        "the CUDA module does not load: /opt/liborrery_cuda.so (undefined symbol: "
        "ncclCommFinalize)");
  CHECK(said("/opt/liborrery_cuda.so belongs to user 5: expected root or the owner") ==
        "the CUDA module does not load (/opt/liborrery_cuda.so belongs to user 5: expected root or "
        "the owner)");
}

TEST_CASE("A backend is read by its word, and an unknown word names those there are") {
  CHECK_FALSE(backend_of("cpu").has_gpus());
  CHECK(backend_of("cpu").profile() == "orrery-cpu");
  for (const GpuVendor& each : gpu_vendors()) {
    CHECK(backend_of(each.word).has_gpus());
    CHECK(backend_of(each.word).profile() == each.profile);
  }
  CHECK_THROWS_WITH(backend_of("tpu"),
                    Catch::Matchers::Contains("expected cpu or cuda, found 'tpu'"));
}

// A link that lacks a symbol shows here: everything is bound when the module is loaded.
TEST_CASE("The CUDA module loads without a GPU and misses the driver") {
  const FoundGpus found = find_gpus(gpu_vendors().front());
  if (found.absence.starts_with("this orrery was built without CUDA")) {
    WARN("skipped: liborrery_cuda.so was not built");
    return;
  }
  INFO(found.absence);
  REQUIRE(found.module != nullptr);
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver != nullptr) {
    dlclose(driver);
    WARN("skipped: a driver is installed");
    return;
  }
  CHECK(found.absence == "no NVIDIA driver is loaded here");
}

}  // namespace
}  // namespace orrery::executor
