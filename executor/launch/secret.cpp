#include "executor/launch/secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "executor/errors.hpp"
#include "executor/launch/socket.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::size_t shortest_secret = 32;  // characters: 128 bits, where they are hexadecimal

template <class Bytes>
Bytes random_bytes() {
  static const bool ready = ::sodium_init() >= 0;
  if (!ready) throw RunFailure{Exit::local_failure, "libsodium does not start"};
  Bytes bytes{};
  ::randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

const unsigned char* as_bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string digits_of(const unsigned char* bytes, std::size_t size) {
  std::string digits(2 * size + 1, '\0');
  ::sodium_bin2hex(digits.data(), digits.size(), bytes, size);
  digits.pop_back();
  return digits;
}

[[noreturn]] void cannot(const std::string& path, const char* what) {
  throw RunFailure{Exit::local_failure,
                   fmt::format("{}: cannot be {}: {}", path, what, std::strerror(errno))};
}

/// Writes the whole file or none, and never replaces one that another process made.
void write_new_secret(const std::string& path) {
  const std::string draft = fmt::format("{}.{}", path, random_name());
  const Secret secret = random_secret();
  const Socket file{::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)};
  const auto size = static_cast<ssize_t>(secret.size());
  if (!file || ::write(file.descriptor(), secret.data(), secret.size()) != size) {
    cannot(draft, "written");
  }
  const bool linked = ::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  if (!linked) cannot(path, "made");
  ::unlink(draft.c_str());
}

}  // namespace

Secret random_secret() {
  return random_bytes<Secret>();
}

Nonce random_nonce() {
  return random_bytes<Nonce>();
}

std::string random_name() {
  const auto bytes = random_bytes<std::array<unsigned char, 8>>();
  return digits_of(bytes.data(), bytes.size());
}

std::string digest_name(std::string_view text) {
  std::array<unsigned char, crypto_generichash_BYTES> digest{};
  ::crypto_generichash(digest.data(), digest.size(), as_bytes(text), text.size(), nullptr, 0);
  return digits_of(digest.data(), 8);
}

Secret parse_secret(std::string_view text) {
  if (text.size() < shortest_secret) {
    throw InputError{"ORRERY_SECRET",
                     fmt::format("expected {} characters or more, such as those of 'openssl rand "
                                 "-hex 32', found {}",
                                 shortest_secret, text.size())};
  }
  Secret secret{};
  ::crypto_generichash(secret.data(), secret.size(), as_bytes(text), text.size(), nullptr, 0);
  return secret;
}

std::string hexadecimal(const Secret& secret) {
  return digits_of(secret.data(), secret.size());
}

std::optional<Secret> parse_hexadecimal(std::string_view digits) {
  Secret secret{};
  std::size_t size = 0;
  const int failed = ::sodium_hex2bin(secret.data(), secret.size(), digits.data(), digits.size(),
                                      nullptr, &size, nullptr);
  if (failed != 0 || size != secret.size()) return std::nullopt;
  return secret;
}

Secret user_secret(const std::string& folder) {
  const std::string path = folder + "/secret";
  Socket file;
  for (;;) {
    file = Socket{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)};
    if (file) break;
    if (errno != ENOENT) cannot(path, "read");
    write_new_secret(path);
  }
  struct stat found {};
  Secret secret{};
  const bool ours = ::fstat(file.descriptor(), &found) == 0 && S_ISREG(found.st_mode) &&
                    found.st_uid == ::geteuid() && (found.st_mode & 077) == 0;
  const auto size = static_cast<ssize_t>(secret.size());
  if (!ours || found.st_size != size ||
      ::read(file.descriptor(), secret.data(), secret.size()) != size) {
    throw RunFailure{
        Exit::local_failure,
        fmt::format("{}: expected {} bytes that only this user may read; remove it", path, size)};
  }
  return secret;
}

std::string proof(const std::optional<Secret>& secret, std::string_view message) {
  const Secret key = secret.value_or(Secret{});
  static_assert(proof_size == crypto_auth_hmacsha256_BYTES);
  static_assert(std::tuple_size_v<Secret> == crypto_auth_hmacsha256_KEYBYTES);
  std::string code(proof_size, '\0');
  ::crypto_auth_hmacsha256(reinterpret_cast<unsigned char*>(code.data()), as_bytes(message),
                           message.size(), key.data());
  return code;
}

bool same_proof(std::string_view one, std::string_view other) {
  return one.size() == proof_size && other.size() == proof_size &&
         ::sodium_memcmp(one.data(), other.data(), proof_size) == 0;
}

}  // namespace orrery::executor
