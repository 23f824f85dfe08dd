// Checkpoints whose manifest or index says anything at all, properly sealed: they are restored, or
// refused in one line.
#include <unistd.h>

#include <filesystem>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/parts.hpp"
#include "executor/checkpoint/verify.hpp"
#include "executor/crc32c.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::executor {
namespace {

/// One matrix of 2 by 3 in a folder of this process.
struct Small {
  std::string folder =
      std::filesystem::temp_directory_path() / ("orrery-fuzz-" + std::to_string(::getpid()));
  Checkpoints checkpoints{{.folder = folder},
                          {.model = "m", .tensors = {{.name = "t", .rows = 2, .columns = 3}}}};
  CheckpointState state{.runs = {{.tensor = 0, .offset = 0, .count = 6, .writer = true}},
                        .load = [](StateKind, std::int64_t local, std::int64_t count, const void*) {
                          if (local < 0 || count < 1 || local + count > 6) std::abort();
                        }};

  Small() { std::filesystem::create_directories(folder + "/step-0000000001"); }
  ~Small() { std::filesystem::remove_all(folder); }

  void write(const std::string& name, Json json) const {
    if (json.is_object()) seal(json);
    write_durably(folder + "/step-0000000001/" + name, json.dump());
  }
};

}  // namespace
}  // namespace orrery::executor

/// `{"manifest": {...}, "index": {...}}`: either stands in for its file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  using namespace orrery::executor;
  static const Small small;
  survives([&] {
    const Document document = Document::parse(text_of(data, size), "checkpoint.json");
    Json index = document.root()["index"].json(), manifest = document.root()["manifest"].json();
    if (index.is_object()) seal(index);
    if (manifest.is_object() && manifest.contains("parts") && manifest["parts"].is_array() &&
        !manifest["parts"].empty() && manifest["parts"][0].is_object() && index.is_object()) {
      manifest["parts"][0]["index_crc32c"] = index["crc32c"];
    }
    small.write("part-00000.json", index);
    small.write("manifest.json", manifest);
    write_durably(small.folder + "/step-0000000001/part-00000.bin", std::string(72, 'x'));
    survives([&] { small.checkpoints.newest(); });
    survives([&] { small.checkpoints.restore(small.state, 1); });
    survives([&] { verify_checkpoints(small.folder); });
  });
  return 0;
}
