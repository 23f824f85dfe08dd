#include "executor/launch/secret.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "executor/errors.hpp"
#include "sim/errors.hpp"
#include "tests/executor/launch/failure.hpp"

namespace orrery::executor {
namespace {

namespace fs = std::filesystem;

// RFC 4231, test case 1: a key of 20 bytes, which HMAC fills with zeros as we do here.
TEST_CASE("A proof is the HMAC-SHA-256 of the message under the secret") {
  Secret key{};
  std::fill_n(key.begin(), 20, 0x0b);
  const std::string expected = "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7";
  Secret found{};
  const std::string code = proof(key, "Hi There");
  REQUIRE(code.size() == found.size());
  std::copy(code.begin(), code.end(), found.begin());
  CHECK(hexadecimal(found) == expected);
  CHECK(same_proof(code, proof(key, "Hi There")));
  CHECK_FALSE(same_proof(code, proof(key, "Hi there")));
  CHECK_FALSE(same_proof(code, proof(random_secret(), "Hi There")));
  CHECK_FALSE(same_proof(code, code.substr(1)));
}

TEST_CASE("ORRERY_SECRET is any text of 32 characters or more") {
  const std::string enough(32, 'x');
  CHECK(parse_secret(enough) == parse_secret(enough));
  CHECK(parse_secret(enough) != parse_secret(enough + "x"));
  CHECK_THROWS_WITH(parse_secret("short"),
                    "ORRERY_SECRET: expected 32 characters or more, such as those of 'openssl rand "
                    "-hex 32', found 5");
}

TEST_CASE("A secret in hexadecimal digits is read again, and nothing else is") {
  const Secret secret = random_secret();
  CHECK(parse_hexadecimal(hexadecimal(secret)) == secret);
  for (const char* wrong : {"", "ab", "hello"}) CHECK_FALSE(parse_hexadecimal(wrong).has_value());
  CHECK_FALSE(parse_hexadecimal(hexadecimal(secret) + "00").has_value());
}

TEST_CASE("The user's secret is made once, whichever process asks, and only the user reads it") {
  const TestFolder folder;
  std::vector<Secret> found(8);
  std::vector<std::thread> ranks;
  for (Secret& each : found) {
    ranks.emplace_back([&each, &folder] { each = user_secret(folder.path()); });
  }
  for (std::thread& each : ranks) each.join();
  for (const Secret& each : found) CHECK(each == found.front());
  const std::string path = folder.path("secret");
  struct stat kept {};
  REQUIRE(stat(path.c_str(), &kept) == 0);
  CHECK((kept.st_mode & 0777) == 0600);
  CHECK(std::distance(fs::directory_iterator{folder.path()}, {}) == 1);  // no draft is left

  const std::string refused = path + ": expected 32 bytes that only this user may read; remove it";
  fs::permissions(path, fs::perms::group_read, fs::perm_options::add);
  CHECK(failure([&] { user_secret(folder.path()); }) == refused);
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  std::ofstream{path} << "31 bytes are not enough, are they";
  CHECK(failure([&] { user_secret(folder.path()); }) == refused);
  fs::remove(path);
  fs::create_symlink("/etc/hostname", path);
  CHECK(failure([&] { user_secret(folder.path()); }).find(path + ": cannot be read: ") == 0);
}

}  // namespace
}  // namespace orrery::executor
