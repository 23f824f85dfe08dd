// Checkpoints that are damaged, made up, or of a run on other inputs.

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "executor/checkpoint/verify.hpp"
#include "small_state.hpp"

namespace orrery::executor {

namespace {

void flip(const std::string& path, std::streamoff at) {
  std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
  file.seekg(at);
  const char byte = static_cast<char>(file.get());
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 1));
}

/// Changes a JSON file and seals it again, as one who means harm would.
void rewrite(const std::string& path, const std::function<void(Json&)>& change) {
  Json json = Document::load(path).json();
  change(json);
  seal(json);
  std::ofstream{path} << json.dump(1) << '\n';
}

/// Steps 10, 20 and 30 of one rank, all kept.
struct ThreeCheckpoints {
  ThreeCheckpoints() {
    Held held = whole();
    for (const int version : {1, 2, 3}) {
      held.fill(version);
      of().save(held.state(), version * 10);
    }
  }
  Checkpoints of(CheckpointRun run = small_run()) {
    return {{.folder = folder.path,
             .keep = 3,
             .note = [this](const std::string& what) { notes.push_back(what); }},
            std::move(run)};
  }
  std::string path(int steps, const std::string& file) const {
    return folder.path + "/" + checkpoint_name(steps) + "/" + file;
  }
  Folder folder;
  std::vector<std::string> notes;
};

}  // namespace

TEST_CASE("A run goes on from the newest checkpoint that is whole, and says what it passes over") {
  ThreeCheckpoints three;
  CHECK(three.of().newest()->steps == 30);
  flip(three.path(30, "manifest.json"), 40);
  std::filesystem::resize_file(three.path(20, "part-00000.bin"), 340);
  CHECK(three.of().newest()->steps == 10);
  CHECK(three.notes ==
        std::vector<std::string>{
            three.path(30, "manifest.json") + ": is damaged: its checksum is wrong",
            three.path(20, "part-00000.bin") + ": is damaged: expected 348 bytes, found 340"});
  // Where all are damaged the run does not begin anew without a word.
  flip(three.path(10, "part-00000.json"), 40);
  CHECK(refusal([&] { three.of().newest(); }) ==
        three.path(30, "manifest.json") + ": is damaged: its checksum is wrong");
  CHECK_FALSE(three.of().newest(10).has_value());
}

TEST_CASE("A damaged checkpoint that is further than the run does not push whole ones out") {
  ThreeCheckpoints three;
  flip(three.path(30, "manifest.json"), 40);
  Held held = whole();
  held.fill(2);
  Checkpoints{{.folder = three.folder.path, .keep = 2}, small_run()}.save(held.state(), 25);
  CHECK(complete_checkpoints(three.folder.path) == std::vector<std::int64_t>{30, 25, 20});
}

TEST_CASE("A part is named as ours are, and nothing leads out of the folder") {
  ThreeCheckpoints three;
  const auto name = GENERATE(as<std::string>{}, "../step-0000000020/part-00000", "/etc/passwd",
                             "part-", "part-00000.bin", "part-0000x", "");
  rewrite(three.path(30, "manifest.json"), [&](Json& json) { json["parts"][0]["name"] = name; });
  CHECK(three.of().newest()->steps == 20);
  CHECK(three.notes ==
        std::vector<std::string>{
            three.path(30, "manifest.json") +
            ":/parts/0/name: expected a name such as \"part-00003\", found \"" + name + "\""});
}

TEST_CASE("Tiles lie inside their tensors and their part, whatever an index says") {
  ThreeCheckpoints three;
  struct Change {
    const char* member;
    std::int64_t value;
  };
  // The matrix has 24 elements, the part 348 bytes.
  const auto change =
      GENERATE(Change{"tensor", 2}, Change{"first", 24}, Change{"count", 25},
               Change{"rows", std::int64_t{1} << 60}, Change{"at", 345}, Change{"at", -1},
               Change{"count", std::int64_t{1} << 62}, Change{"kind", 3});
  INFO(change.member << " = " << change.value);
  std::uint64_t sealed = 0;
  rewrite(three.path(30, "part-00000.json"), [&](Json& json) {
    json["tiles"][0][change.member] = change.value;
    seal(json);
    sealed = json["crc32c"].get<std::uint64_t>();
  });
  rewrite(three.path(30, "manifest.json"),
          [&](Json& json) { json["parts"][0]["index_crc32c"] = sealed; });
  CHECK(three.of().newest()->steps == 20);
  REQUIRE(three.notes.size() == 1);
  const std::string place = std::string{"/tiles/0/"} + change.member + ": ";
  CHECK_THAT(three.notes[0], Catch::Matchers::Contains(place));
}

TEST_CASE("A seed that is no number is damage like any other") {
  ThreeCheckpoints three;
  rewrite(three.path(30, "manifest.json"), [](Json& json) { json["seed"] = "seven"; });
  CHECK(three.of().newest()->steps == 20);
  REQUIRE(three.notes.size() == 1);
  CHECK_THAT(three.notes[0], Catch::Matchers::Contains("/seed: expected a whole number"));
}

TEST_CASE("Other data, batch, length or precision are refused unless they may have changed") {
  const Folder folder;
  CheckpointRun run = small_run();
  run.inputs = {{"data", "crc32c 00000001 of 5 bytes"}, {"global_batch", "8"}};
  Held held = whole();
  held.fill(1);
  Checkpoints{{.folder = folder.path}, run}.save(held.state(), 10);
  CHECK(Checkpoints({.folder = folder.path}, run).newest()->steps == 10);
  run.inputs[1].second = "16";
  const std::string manifest = folder.path + "/step-0000000010/manifest.json";
  CHECK(refusal([&] { Checkpoints({.folder = folder.path}, run).newest(); }) ==
        manifest +
            ": global_batch was 8, in this run it is 16; use --resume changed to resume anyway");
  run.changed = Changed::accepted;
  std::string noted;
  const Checkpoints changed{
      {.folder = folder.path, .note = [&](const std::string& what) { noted = what; }}, run};
  CHECK(changed.newest()->steps == 10);
  CHECK(noted == manifest + ": global_batch was 8, in this run it is 16");
  // One that was written before inputs were kept is gone on from.
  rewrite(manifest, [](Json& json) { json.erase("inputs"); });
  run.changed = Changed::refused;
  CHECK(Checkpoints({.folder = folder.path}, run).newest()->steps == 10);
}

TEST_CASE("Verification reads every byte of every checkpoint, without the run") {
  ThreeCheckpoints three;
  auto found = verify_checkpoints(three.folder.path);
  REQUIRE(found.size() == 3);
  for (const VerifiedCheckpoint& each : found) CHECK(each.damage == "");
  CHECK(found[0].steps == 30);
  CHECK(found[0].model == "small");
  CHECK(found[0].bytes == 348);  // 29 elements of 4 bytes, three kinds
  flip(three.path(20, "part-00000.bin"), 100);
  // A part that is left out: what it held is nowhere.
  rewrite(three.path(10, "manifest.json"), [](Json& json) { json["parts"] = Json::array(); });
  found = verify_checkpoints(three.folder.path);
  CHECK(found[0].whole());
  CHECK(found[1].damage ==
        three.path(20, "part-00000.bin") + ": is damaged: its checksum is wrong");
  CHECK(found[2].damage == three.folder.path +
                               "/step-0000000010: does not hold every element of "
                               "matrix exactly once");
  CHECK(verify_checkpoints(three.folder.path + "/step-0000000020").size() == 1);
  CHECK(refusal([&] { verify_checkpoints(three.folder.path + "/none"); }) ==
        three.folder.path + "/none: has no checkpoint");
}

}  // namespace orrery::executor
