#pragma once
// The secret that lets a rank into a run across machines: 32 bytes that its ranks share, and a
// proof of knowing them that does not reveal them. Random numbers and the HMAC are libsodium's.

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::executor {

using Secret = std::array<unsigned char, 32>;
/// Random and used once, so that an overheard handshake cannot be replayed.
using Nonce = std::array<unsigned char, 32>;

Secret random_secret();
Nonce random_nonce();
/// 16 letters and digits.
std::string random_name();
/// 16 letters and digits that follow from the text.
std::string digest_name(std::string_view text);

/// Derives a secret from the text of ORRERY_SECRET.
/// Errors  InputError `ORRERY_SECRET: expected 32 characters or more, such as those of 'openssl
///         rand -hex 32', found 5`
Secret parse_secret(std::string_view text);
/// As 64 digits, which `parse_hexadecimal` reads.
std::string hexadecimal(const Secret& secret);
std::optional<Secret> parse_hexadecimal(std::string_view digits);

/// The secret of this user on this machine: a file (0600) in a private folder, made by the first
/// process that asks. Errors  RunFailure{local_failure}: `PATH: expected 32 bytes that only this
/// user may read`
Secret user_secret(const std::string& folder);

/// HMAC-SHA-256 of the message. Without a secret it proves nothing but that the message arrived.
/// Source  RFC 2104
std::string proof(const std::optional<Secret>& secret, std::string_view message);
inline constexpr std::size_t proof_size = 32;
/// Compares two proofs in a time that does not depend on where they differ.
bool same_proof(std::string_view one, std::string_view other);

}  // namespace orrery::executor
