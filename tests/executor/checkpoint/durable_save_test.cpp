// That a checkpoint outlives a power cut, by the calls that it makes; and that it is refused aloud
// when any of them fails.

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <filesystem>

#include "file_calls.hpp"
#include "small_state.hpp"

namespace orrery::executor {

namespace {

std::string folder_of_file(const std::string& path) {
  return std::filesystem::path{path}.parent_path().string();
}

/// Steps 10 and 20 in versions 1 and 2; then the save of version 3 at step 30.
class ThirdSave {
 public:
  ThirdSave() : checkpoints_{{.folder = folder_.path}, small_run()} {
    for (const int version : {1, 2}) {
      held_.fill(version);
      checkpoints_.save(held_.state(), version * 10);
    }
    held_.fill(3);
  }
  const std::string& folder() const { return folder_.path; }
  void save() { checkpoints_.save(held_.state(), 30); }

  /// The version that a run would go on from, with all that it had.
  int whole_version() {
    const auto found = checkpoints_.newest();
    REQUIRE(found.has_value());
    const int version = static_cast<int>(found->steps / 10);
    Held restored = whole();
    checkpoints_.restore(restored.state(), found->steps);
    CHECK(restored.holds(version));
    return version;
  }

 private:
  Folder folder_;
  Held held_ = whole();
  Checkpoints checkpoints_;
};

}  // namespace

TEST_CASE("Each file of a checkpoint is flushed before its rename, its folder after it") {
  ThirdSave third;
  std::vector<FileCall> calls;
  {
    const FileCalls recorded{third.folder()};
    third.save();
    calls = recorded.all();
  }
  std::vector<std::string> renamed;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].name != "rename") continue;
    renamed.push_back(std::filesystem::path{calls[i].to}.filename().string());
    INFO(calls[i].to);
    std::vector<std::string> before;  // on the file that is renamed
    for (std::size_t k = 0; k < i; ++k) {
      const bool again = !before.empty() && before.back() == calls[k].name;
      if (calls[k].path == calls[i].path && !again) before.push_back(calls[k].name);
    }
    CHECK(before == std::vector<std::string>{"write", "fsync", "close"});
    REQUIRE(i + 1 < calls.size());
    CHECK(calls[i + 1].name == "fsync");
    CHECK(calls[i + 1].path == folder_of_file(calls[i].to));
  }
  CHECK(renamed ==
        std::vector<std::string>{"part-00000.bin", "part-00000.json", "manifest.json", "latest"});
}

TEST_CASE("Whatever call of a save fails is said, and what was whole stays whole") {
  const auto calls_of_a_save = [] {
    ThirdSave third;
    const FileCalls recorded{third.folder()};
    third.save();
    return recorded.all();
  }();
  int failures = 0;
  for (std::size_t i = 0; i < calls_of_a_save.size(); ++i) {
    const FileCall& call = calls_of_a_save[i];
    const bool of_a_new_file =
        call.path.size() > 4 && call.path.substr(call.path.size() - 4) == ".tmp";
    if (call.name == "close" && !of_a_new_file) continue;  // nothing is written there
    ++failures;
    ThirdSave third;
    std::string said = "nothing";
    bool failed = false;
    {
      const FileCalls failing{third.folder(), i, ENOSPC};
      try {
        third.save();
      } catch (const std::exception& error) {
        said = error.what();
      }
      failed = failing.failed();
    }
    INFO(call.name << " of " << call.path);
    CHECK(failed);
    CHECK_THAT(said, Catch::Matchers::EndsWith(": cannot be written: No space left on device"));
    const int version = third.whole_version();
    CHECK((version == 2 || version == 3));
    third.save();  // there is room again
    CHECK(third.whole_version() == 3);
  }
  // Writes, fsync, close, rename and the folder's fsync of four files, the first of six tiles; the
  // folders made, one old one gone.
  CHECK(failures == (6 + 4) + 3 * (1 + 4) + 2 + 1);
}

TEST_CASE("A call that a signal interrupts is repeated, and the save is whole") {
  const auto calls = [] {
    ThirdSave third;
    const FileCalls recorded{third.folder()};
    third.save();
    return recorded.all();
  }();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    INFO(calls[i].name << " of " << calls[i].path);
    ThirdSave third;
    const FileCalls interrupted{third.folder(), i, EINTR};
    CHECK_NOTHROW(third.save());
    CHECK(interrupted.failed());
    CHECK(third.whole_version() == 3);
  }
  ThirdSave third;
  const FailingOnce interrupted{"open", EINTR};
  CHECK_NOTHROW(third.save());
  CHECK(interrupted.failed());
}

}  // namespace orrery::executor
