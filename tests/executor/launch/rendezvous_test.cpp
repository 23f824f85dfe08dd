#include "executor/launch/rendezvous.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "executor/launch/private_folder.hpp"
#include "sim/errors.hpp"
#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {
namespace {

namespace fs = std::filesystem;

Placement torchrun(int local) {
  return {.launcher = Launcher::torchrun,
          .rank = 1,
          .ranks = 4,
          .local_ranks = local,
          .rendezvous = Address{"node1", 29500},
          .job = "none-0"};
}

Placement by_hand(const std::string& address) {
  return placement({}, {.rank = 1, .ranks = 2, .address = address});
}

}  // namespace

TEST_CASE("The private folder is in XDG_RUNTIME_DIR, where that is the user's alone") {
  const TestFolder folder;
  CHECK(private_folder({{"XDG_RUNTIME_DIR", folder.path()}}) == folder.path("orrery"));
  struct stat made {};
  REQUIRE(stat(folder.path("orrery").c_str(), &made) == 0);
  CHECK((made.st_mode & 0777) == 0700);
  const std::string fallback = fmt::format("/tmp/orrery-{}", geteuid());
  CHECK(private_folder({}) == fallback);
  fs::permissions(folder.path(), fs::perms::others_exec, fs::perm_options::add);
  CHECK(private_folder({{"XDG_RUNTIME_DIR", folder.path()}}) == fallback);
  CHECK(private_folder({{"XDG_RUNTIME_DIR", folder.path("nothing")}}) == fallback);
}

TEST_CASE("A folder that others may enter, of another user or reached by a link is refused") {
  const TestFolder folder;
  const std::string path = folder.path("orrery");
  const auto found = [&](const std::string& what) {
    return fmt::format(
        "{}: expected a folder that only user {} can enter, found {}; remove it, or set "
        "XDG_RUNTIME_DIR",
        path, geteuid(), what);
  };
  CHECK(failure([&] { require_private(path); }) == found("No such file or directory"));
  fs::create_directory(path);
  fs::permissions(path, fs::perms::owner_all | fs::perms::group_exec);
  CHECK(failure([&] { require_private(path); }) ==
        found("a folder that other users can enter (mode 710)"));
  fs::permissions(path, fs::perms::owner_all);
  CHECK(failure([&] { require_private(path); }).empty());
  if (geteuid() == 0 && chown(path.c_str(), 12345, 12345) == 0) {
    CHECK(failure([&] { require_private(path); }) == found("a folder of user 12345"));
  }
  fs::remove(path);
  fs::create_directory_symlink(folder.path(), path);
  CHECK(failure([&] { require_private(path); }) == found("a file that is not a folder"));
}

TEST_CASE("Ranks of one host meet at a Unix socket of their job") {
  const TestFolder folder;
  const Environment environment{{"XDG_RUNTIME_DIR", folder.path()}};
  const auto place = rendezvous_of(torchrun(4), environment);
  REQUIRE(place.has_value());
  CHECK(place->address.path.find(folder.path("orrery/")) == 0);
  CHECK_FALSE(place->open());
  Placement other = torchrun(4);
  other.rank = 2;
  CHECK(rendezvous_of(other, environment)->address == place->address);
  other.job = "none-1";  // started again
  CHECK(rendezvous_of(other, environment)->address != place->address);

  const Placement ours{.launcher = Launcher::orrery, .ranks = 2, .local_ranks = 2};
  CHECK(rendezvous_of(ours, {{"ORRERY_STORE", "/run/x/store"}})->address.path == "/run/x/store");
  const Placement alone{.ranks = 1, .local_ranks = 1};
  CHECK(rendezvous_of(alone, environment)->address.path.find(folder.path("orrery/")) == 0);
}

TEST_CASE(
    "Across hosts ranks meet at the address, with ORRERY_SECRET or open to all who reach it") {
  const auto open = rendezvous_of(torchrun(2), {});
  REQUIRE(open.has_value());
  CHECK(open->address == Address{"node1", 29500});
  CHECK(open->open());
  CHECK(warning_of(*open) == "no ORRERY_SECRET: anyone who reaches node1:29500 can join this run");
  const std::string secret(40, 's');
  const auto closed = rendezvous_of(torchrun(2), {{"ORRERY_SECRET", secret}});
  CHECK(closed->secret == parse_secret(secret));
  CHECK_FALSE(closed->open());
  CHECK_THROWS_AS(rendezvous_of(torchrun(2), {{"ORRERY_SECRET", "x"}}), InputError);
  CHECK(rendezvous_of(by_hand("10.0.0.1:29500"), {})->open());
}

TEST_CASE("An address of this machine alone is kept by the user's own secret") {
  const TestFolder folder;
  const Environment environment{{"XDG_RUNTIME_DIR", folder.path()}};
  const auto place = rendezvous_of(by_hand("127.0.0.1:29500"), environment);
  CHECK(place->address == Address{"127.0.0.1", 29500});
  CHECK(place->secret == user_secret(folder.path("orrery")));
}

TEST_CASE("Without an address several hosts meet by MPI or not at all") {
  Placement placed = torchrun(2);
  placed.rendezvous.reset();
  CHECK_THROWS_WITH(rendezvous_of(placed, {}),
                    "--address: missing: ranks on several machines need HOST:PORT of rank 0");
  placed.mpi = true;
  placed.rendezvous = Address{"node1", 29500};  // where rank 0 listens then, with a secret
  CHECK_FALSE(rendezvous_of(placed, {}).has_value());
  const Rendezvous made{{"node1", 4000}, random_secret()};
  const Rendezvous read = parse_rendezvous(text_of(made));
  CHECK(read.address == made.address);
  CHECK(read.secret == made.secret);
  CHECK(failure([] { parse_rendezvous("here"); }) == "rank 0 broadcast no address");
}

}  // namespace orrery::executor
