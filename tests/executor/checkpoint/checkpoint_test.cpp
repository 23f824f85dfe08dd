#include "executor/checkpoint/checkpoint.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <numeric>
#include <thread>

#include "executor/checkpoint/parts.hpp"
#include "executor/crc32c.hpp"
#include "executor/errors.hpp"
#include "small_state.hpp"

namespace orrery::executor {

namespace {

/// Columns [2 r, 2 r + 2) of the matrix; the vector on both ranks, written by rank 0.
Held columns_of_two(int rank) {
  std::vector<StateRun> runs;
  for (std::int64_t row = 0; row < 6; ++row) {
    runs.push_back({.tensor = 0, .offset = row * 4 + rank * 2, .count = 2, .writer = true});
  }
  runs.push_back({.tensor = 1, .offset = 0, .count = 5, .writer = rank == 0});
  return Held{runs};
}

/// Rows [2 r, 2 r + 2) of the matrix; the vector in pieces of 2, 2 and 1.
Held rows_of_three(int rank) {
  return Held{{{.tensor = 0, .offset = rank * 8, .count = 8, .writer = true},
               {.tensor = 1, .offset = rank * 2, .count = rank == 2 ? 1 : 2, .writer = true}}};
}

/// All ranks come, then all go on.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_{ranks} {}
  void wait() {
    std::unique_lock guard{lock_};
    const int round = round_;
    if (++arrived_ == ranks_) {
      arrived_ = 0;
      ++round_;
      changed_.notify_all();
    }
    changed_.wait(guard, [&] { return round_ != round; });
  }

 private:
  int ranks_, arrived_ = 0, round_ = 0;
  std::mutex lock_;
  std::condition_variable changed_;
};

void save_on_two(const std::string& folder, std::int64_t steps, int version) {
  Meeting meeting{2};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      Held held = columns_of_two(rank);
      held.fill(version);
      Checkpoints{{.folder = folder,
                   .rank = rank,
                   .ranks = 2,
                   .barrier = [&](const std::string&) { meeting.wait(); }},
                  small_run()}
          .save(held.state(), steps);
    });
  }
  for (std::thread& each : ranks) each.join();
}

}  // namespace

TEST_CASE("The checksum is CRC-32C, also in parts") {
  // RFC 3720, appendix B.4.
  CHECK(crc32c("123456789", 9) == 0xe3069283U);
  CHECK(crc32c("6789", 4, crc32c("12345", 5)) == 0xe3069283U);
  const std::string zeros(32, '\0');
  CHECK(crc32c(zeros.data(), 32) == 0x8a9136aaU);
}

TEST_CASE("A column shard is one tile; only what is written by this rank is written") {
  const auto runs = columns_of_two(1).state().runs;
  const std::vector<Tile> all = tiles_of(runs, Which::all);
  REQUIRE(all.size() == 2);
  CHECK(all[0] == Tile{0, 2, 2, 4, 6, 0});
  CHECK(all[1] == Tile{1, 0, 5, 5, 1, 12});
  CHECK(tiles_of(runs, Which::written) == std::vector<Tile>{all[0]});
}

TEST_CASE("Two tiles share exactly the elements that lie in both") {
  // By counting: an element of a 12 x 8 matrix is in a tile or it is not.
  const auto inside = [](const Tile& tile, std::int64_t element) -> std::int64_t {
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      const std::int64_t from = tile.first + row * tile.stride;
      if (element >= from && element < from + tile.count) return row * tile.count + element - from;
    }
    return -1;
  };
  std::vector<Tile> tiles;
  for (const std::int64_t first : {0, 3, 17}) {
    for (const std::int64_t count : {1, 5, 8}) {
      for (const std::int64_t rows : {1, 4})
        tiles.push_back({0, first, count, 8 + count % 2, rows, 0});
    }
  }
  for (const Tile& stored : tiles) {
    for (const Tile& wanted : tiles) {
      std::vector<std::int64_t> found(static_cast<std::size_t>(wanted.elements()), -1);
      for_each_overlap(stored, wanted, [&](const TileOverlap& overlap) {
        for (std::int64_t i = 0; i < overlap.count; ++i) {
          found[static_cast<std::size_t>(overlap.in_wanted + i)] = overlap.in_stored + i;
        }
      });
      std::vector<std::int64_t> expected;
      for (std::int64_t row = 0; row < wanted.rows; ++row) {
        for (std::int64_t i = 0; i < wanted.count; ++i) {
          expected.push_back(inside(stored, wanted.first + row * wanted.stride + i));
        }
      }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("What two ranks wrote by columns three ranks read by rows") {
  const Folder folder;
  save_on_two(folder.path + "/runs/first", 40, 3);
  for (int rank = 0; rank < 3; ++rank) {
    const Checkpoints reader{{.folder = folder.path + "/runs/first", .rank = rank, .ranks = 3},
                             small_run()};
    const auto found = reader.newest();
    REQUIRE(found.has_value());
    CHECK(found->steps == 40);
    Held held = rows_of_three(rank);
    reader.restore(held.state(), found->steps);
    CHECK(held.holds(3));
  }
  std::ifstream latest{folder.path + "/runs/first/latest"};
  std::string name;
  std::getline(latest, name);
  CHECK(name == "step-0000000040");
}

TEST_CASE("An empty folder has no checkpoint; two are kept") {
  const Folder folder;
  const Checkpoints checkpoints{{.folder = folder.path}, small_run()};
  CHECK_FALSE(checkpoints.newest().has_value());
  Held held = whole();
  for (int version = 1; version <= 4; ++version) {
    held.fill(version);
    checkpoints.save(held.state(), version * 10);
  }
  CHECK(complete_checkpoints(folder.path) == std::vector<std::int64_t>{40, 30});
  CHECK_FALSE(fs::exists(folder.path + "/step-0000000020"));
}

TEST_CASE("The scale of the loss is kept where there is one") {
  const Folder folder;
  Held held = whole();
  held.fill(1);
  const Checkpoints checkpoints{{.folder = folder.path}, small_run()};
  CheckpointState state = held.state();
  LossScaleState loaded{.value = -1, .good = -1, .skipped = -1};
  state.load_loss_scale = [&](const LossScaleState& found) { loaded = found; };
  checkpoints.save(state, 10);
  checkpoints.restore(state, 10);
  CHECK(loaded.value == -1);
  state.loss_scale = LossScaleState{.value = 0.5, .good = 1999, .skipped = 17};
  checkpoints.save(state, 20);
  checkpoints.restore(state, 20);
  CHECK(loaded.value == 0.5);
  CHECK(loaded.good == 1999);
  CHECK(loaded.skipped == 17);
}

TEST_CASE("Whatever step of a save a run dies after, the newest checkpoint is whole") {
  // Version 1 at step 10 and version 2 at step 20 are there; a process dies in version 3's save,
  // after its first, second, ... step. Then the newest one is 20 or 30, with all that it had.
  for (int dies_after = 1;; ++dies_after) {
    const Folder folder;
    Held held = whole();
    const Checkpoints before{{.folder = folder.path}, small_run()};
    for (const int version : {1, 2}) {
      held.fill(version);
      before.save(held.state(), version * 10);
    }
    const pid_t child = fork();
    if (child == 0) {
      int steps = 0;
      held.fill(3);
      Checkpoints{{.folder = folder.path,
                   .step =
                       [&](std::string_view) {
                         if (++steps == dies_after) _exit(9);
                       }},
                  small_run()}
          .save(held.state(), 30);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const auto found = before.newest();
    REQUIRE(found.has_value());
    const int version = static_cast<int>(found->steps / 10);
    CHECK((version == 2 || version == 3));
    Held restored = whole();
    before.restore(restored.state(), found->steps);
    CHECK(restored.holds(version));
    // And the run that goes on from there can save again.
    restored.fill(4);
    before.save(restored.state(), found->steps + 10);
    CHECK(before.newest()->steps == found->steps + 10);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      // Folder, data, index, manifest, latest: 1 + 4 x 4, one removal of two steps.
      CHECK(dies_after == 1 + 16 + 2 + 1);
      CHECK(version == 3);
      break;
    }
  }
}

TEST_CASE("Damage and foreign checkpoints are refused in one sentence") {
  const Folder folder;
  const Checkpoints own{{.folder = folder.path}, small_run()};
  Held held = whole();
  held.fill(1);
  own.save(held.state(), 10);
  const std::string step = folder.path + "/step-0000000010/";
  const std::string manifest = step + "manifest.json";
  const auto with = [&](const std::function<void(CheckpointRun&)>& change) {
    CheckpointRun run = small_run();
    change(run);
    return refusal([&] { Checkpoints({.folder = folder.path}, run).newest(); });
  };
  CHECK(with([](CheckpointRun& run) { run.tensors[0].rows = 8; }) ==
        manifest + ": is of another run (small): its matrix is [6, 4], in this run it is [8, 4]");
  CHECK(with([](CheckpointRun& run) { run.tensors.pop_back(); }) ==
        manifest + ": is of another run (small): it has an additional tensor vector");
  CHECK(with([](CheckpointRun& run) {
          run.tensors.push_back({"bias", 1, 3});
        }) == manifest + ": is of another run (small): it has no tensor bias");
  CHECK(with([](CheckpointRun& run) { run.tensors[1].name = "bias"; }) ==
        manifest + ": is of another run (small): it has tensor vector in place of bias");
  CHECK(with([](CheckpointRun& run) { run.format = models::DType::fp64; }) ==
        manifest + ": is of another run (small): its elements are fp32, in this run they are fp64");
  CHECK(with([](CheckpointRun& run) { run.seed = 8; }) ==
        manifest + ": is of another run (small): its seed is 7, in this run it is 8");

  // One bit of the data, of the index, of the manifest.
  const auto flip = [](const std::string& path, std::streamoff at) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(at);
    const char byte = static_cast<char>(file.get());
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
  };
  const auto restored = [&] {
    Held again = whole();
    return refusal([&] { own.restore(again.state(), 10); });
  };
  flip(step + "part-00000.bin", 100);
  CHECK(restored() == step + "part-00000.bin: is damaged: its checksum is wrong");
  fs::resize_file(step + "part-00000.bin", 90);
  CHECK(restored() == step + "part-00000.bin: is damaged: expected 348 bytes, found 90");
  fs::remove(step + "part-00000.bin");
  CHECK(restored() == step + "part-00000.bin: is missing");
  flip(manifest, 40);  // a digit or a letter: still JSON
  CHECK(refusal([&] { own.newest(); }) == manifest + ": is damaged: its checksum is wrong");
}

TEST_CASE("A disk that is full is said, and the checkpoint before is still the newest") {
  // A limit on the size of files fails writes as a full disk does, without being one.
  const Folder folder;
  const Checkpoints checkpoints{{.folder = folder.path}, small_run()};
  Held held = whole();
  held.fill(1);
  checkpoints.save(held.state(), 10);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100, 100};  // bytes; the data are 29 elements of 4 bytes in 3 kinds
    setrlimit(RLIMIT_FSIZE, &limit);
    const std::string found = refusal([&] { checkpoints.save(held.state(), 20); });
    const std::string expected = "output: " + folder.path +
                                 "/step-0000000020/part-00000.bin: cannot be written: File too "
                                 "large";
    const bool cleaned = fs::is_empty(folder.path + "/step-0000000020");
    _exit(found == expected && cleaned ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  CHECK(checkpoints.newest()->steps == 10);
}

}  // namespace orrery::executor
