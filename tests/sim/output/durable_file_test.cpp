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

TEST_CASE("A link stays a link, and no other file of the user is followed, changed or removed") {
  const Folder folder;
  const std::string real = folder.file("real.json"), link = folder.file("link.json");
  const std::vector<std::string> mine{"victim", "real.json.tmp", "real.json.partial", ".real.json",
                                      "real.json~"};
  for (const std::string& each : mine) std::ofstream{folder.file(each)} << "mine";
  fs::create_symlink(folder.file("victim"), folder.file("real.tmp"));
  write_durably(real, "old");
  fs::create_symlink("real.json", link);
  write_durably(link, "new");
  CHECK(fs::is_symlink(link));
  CHECK(text_in(real) == "new");
  for (const std::string& each : mine) CHECK(text_in(folder.file(each)) == "mine");
  CHECK(fs::is_symlink(folder.file("real.tmp")));
  CHECK(folder.count() == mine.size() + 3);  // real.json and the links: nothing is left over
}

TEST_CASE("A new file has the rights of the one it replaces, whatever the umask") {
  const Folder folder;
  const std::string path = folder.file("step.json");
  const mode_t before = umask(0027);
  write_durably(path, "new");
  CHECK(fs::status(path).permissions() == fs::perms{0640});
  for (const unsigned rights : {0664U, 0600U, 0444U, 0606U}) {
    fs::permissions(path, fs::perms{rights});
    write_durably(path, "again");
    CHECK(fs::status(path).permissions() == fs::perms{rights});
  }
  umask(before);
}

TEST_CASE("A group that is not the user's keeps its file, or its rights go to no other group") {
  // Only who may give a file to another group can see it: root here, and anyone in two groups.
  const Folder folder;
  const std::string path = folder.file("step.json");
  write_durably(path, "old");
  constexpr gid_t other = 54321;
  struct stat found {};
  if (chown(path.c_str(), static_cast<uid_t>(-1), other) != 0) return;
  fs::permissions(path, fs::perms{0660});
  write_durably(path, "new");
  REQUIRE(stat(path.c_str(), &found) == 0);
  CHECK(found.st_gid == other);
  CHECK((found.st_mode & 0777U) == 0660);
}

TEST_CASE("The longest name that a folder takes can be written") {
  const Folder folder;
  const std::string path = folder.file(std::string(255, 'n'));
  write_durably(path, "text");
  CHECK(text_in(path) == "text");
  CHECK(folder.count() == 1);
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

TEST_CASE("A log is cut back by whole lines from its end") {
  const Folder folder;
  const std::string path = folder.file("log");
  std::ofstream{path} << "late\nearly\nlate\nlate\ntor";
  LineLog log{path};
  log.cut_back([](std::string_view line) { return line == "late"; });
  log.add("next");
  CHECK(text_in(path) == "late\nearly\nnext\n");
  log.cut_back([](std::string_view) { return true; });
  CHECK(text_in(path).empty());
  CHECK_NOTHROW(LineLog{"/dev/null"}.cut_back([](std::string_view) { return true; }));
}

}  // namespace orrery
