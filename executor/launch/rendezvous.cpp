#include "executor/launch/rendezvous.hpp"

#include <fmt/format.h>

#include "executor/errors.hpp"
#include "executor/launch/private_folder.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

std::optional<Secret> secret_for(const Address& address, const Environment& environment) {
  const auto given = environment.find("ORRERY_SECRET");
  if (given != environment.end()) return parse_secret(given->second);
  if (is_loopback(address.host)) return user_secret(private_folder(environment));
  return std::nullopt;
}

/// The path of a job's socket: the same for all its ranks on this host, different for other jobs.
std::string socket_of(const Placement& placed, const Environment& environment) {
  const std::string where = placed.rendezvous ? text_of(*placed.rendezvous) : "";
  return fmt::format("{}/{}", private_folder(environment), digest_name(placed.job + ' ' + where));
}

}  // namespace

std::optional<Rendezvous> rendezvous_of(const Placement& placed, const Environment& environment) {
  const auto store = environment.find("ORRERY_STORE");
  if (placed.launcher == Launcher::orrery && store != environment.end()) {
    return Rendezvous{.address = {.path = store->second}};
  }
  const bool one_host = placed.local_ranks == placed.ranks;
  if (one_host && placed.ranks == 1) return Rendezvous{.address = unused_socket(environment)};
  if (one_host && !placed.by_address) {
    return Rendezvous{.address = {.path = socket_of(placed, environment)}};
  }
  if (placed.mpi) return std::nullopt;
  if (placed.rendezvous) {
    return Rendezvous{*placed.rendezvous, secret_for(*placed.rendezvous, environment)};
  }
  throw InputError{"--address", "missing: ranks on several machines need HOST:PORT of rank 0"};
}

std::string text_of(const Rendezvous& place) {
  const std::string secret = place.secret ? hexadecimal(*place.secret) : "";
  return fmt::format("{} {}", text_of(place.address), secret);
}

Rendezvous parse_rendezvous(const std::string& text) {
  const std::size_t space = text.rfind(' ');
  try {
    if (space == std::string::npos) throw InputError{"rank 0", "no space"};
    const auto secret = parse_hexadecimal(std::string_view{text}.substr(space + 1));
    return {parse_address(text.substr(0, space), "rank 0"), secret};
  } catch (const InputError&) {
    throw RunFailure{Exit::peer_failed, "rank 0 broadcast no address"};
  }
}

std::string warning_of(const Rendezvous& place) {
  return fmt::format("no ORRERY_SECRET: anyone who reaches {} can join this run",
                     text_of(place.address));
}

}  // namespace orrery::executor
