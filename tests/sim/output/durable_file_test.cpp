#include "sim/output/durable_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "sim/errors.hpp"
#include "sim/output/line_log.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

struct Folder {
  Folder() {
    std::string name = (fs::temp_directory_path() / "orrery-output-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return path + "/" + name; }
  std::size_t count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator{path}, fs::directory_iterator{}));
  }
  std::string path;
};

std::string text_in(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream{path, std::ios::binary}.rdbuf();
  return text.str();
}

std::string output_refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const OutputError& error) {
    return error.what();
  }
  return "written";
}

/// What `call` says where no file may be longer than `most` bytes, as on a disk that is full.
std::string on_a_full_disk(rlim_t most, const std::function<void()>& call) {
  int pipes[2];
  REQUIRE(pipe(pipes) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_FSIZE, &limit);
    write_all(pipes[1], output_refusal(call));
    _exit(0);
  }
  close(pipes[1]);
  std::string said(1000, '\0');
  const ssize_t size = read(pipes[0], said.data(), said.size());
  close(pipes[0]);
  waitpid(child, nullptr, 0);
  said.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return said;
}

}  // namespace

TEST_CASE("A file is replaced whole, with the permissions that it had") {
  const Folder folder;
  const std::string path = folder.file("step.json");
  write_durably(path, "old");
  fs::permissions(path, fs::perms{0640});
  {
    DurableFile file{path};
    file.write("half of the ");
    CHECK(text_in(path) == "old");
    file.write("new");
    file.commit();
  }
  CHECK(text_in(path) == "half of the new");
  CHECK(fs::status(path).permissions() == fs::perms{0640});
  CHECK(folder.count() == 1);
}

TEST_CASE("What is given up half way leaves the file that was there") {
  const Folder folder;
  const std::string path = folder.file("step.json");
  write_durably(path, "old");
  { DurableFile{path}.write("half"); }
  CHECK(text_in(path) == "old");
  CHECK(folder.count() == 1);
  require_writable(folder.file("other.json"));
  CHECK(folder.count() == 1);
}

TEST_CASE("On a full disk the old file stays, and the line says why") {
  const Folder folder;
  const std::string path = folder.file("step.json");
  write_durably(path, "old");
  CHECK(on_a_full_disk(8, [&] { write_durably(path, "longer than eight bytes"); }) ==
        path + ": cannot be written: File too large");
  CHECK(text_in(path) == "old");
  CHECK(folder.count() == 1);
}

TEST_CASE("A link stays a link, and what somebody put in the temporary's place is not followed") {
  const Folder folder;
  const std::string real = folder.file("real.json"), link = folder.file("link.json");
  const std::string victim = folder.file("victim");
  write_durably(real, "old");
  write_durably(victim, "mine");
  fs::create_symlink("real.json", link);
  fs::create_symlink(victim, real + ".tmp");
  write_durably(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(text_in(real) == "new");
  CHECK(text_in(victim) == "mine");
}

TEST_CASE("Devices take what they take, and stay devices") {
  write_durably("/dev/null", "gone");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(output_refusal([] { write_durably("/dev/full", "no room"); }) ==
        "/dev/full: cannot be written: No space left on device");
  CHECK(fs::is_character_file("/dev/full"));
  CHECK(output_refusal([] { write_durably("/nowhere/at/all", ""); }) ==
        "/nowhere/at/all: cannot be written: No such file or directory");
}

TEST_CASE("A log holds whole lines, also when the disk is full within one") {
  const Folder folder;
  const std::string path = folder.file("log");
  { LineLog{path}.add("one"); }
  // 4 bytes are there; the next line would be 6, and 8 is the most.
  CHECK(on_a_full_disk(8, [&] { LineLog{path}.add("three"); }) ==
        path + ": cannot be written: File too large");
  CHECK(text_in(path) == "one\n");
  { LineLog{path}.add("two"); }
  CHECK(text_in(path) == "one\ntwo\n");
  CHECK(output_refusal([] { LineLog{"/dev/full"}.add("no room"); }) ==
        "/dev/full: cannot be written: No space left on device");
}

}  // namespace orrery
