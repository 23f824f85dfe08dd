// Opens a rank's store: finds its address and, on rank 0, starts its server.

#include <fmt/format.h>
#include <unistd.h>

#include <numeric>

#include "executor/session/rank_session.hpp"

namespace orrery::executor {

namespace {

constexpr std::chrono::seconds to_reach_store{120};  // ranks of a large job start minutes apart
constexpr std::size_t place_size = 512;              // bytes of the message with the address

}  // namespace

void RankSession::open_store(const std::optional<ThreadRanks>& threads) {
  Rendezvous place;
  if (threads) {
    place.address = threads->store;
  } else {
    const auto known = rendezvous_of(placed_, environment());
    place = known ? *known : rendezvous_by_mpi();
  }
  identity_.secret = place.secret;
  if (placed_.rank == 0 && !threads) serve(place);
  store_ = std::make_unique<Store>(place.address, identity_, placed_.rank, to_reach_store);
  const bool named = place.address.path.empty() && !is_loopback(place.address.host);
  if (server_ && named && place.address.host != "0.0.0.0" && place.address.host != "::" &&
      is_loopback(store_->local().host)) {
    note(fmt::format("{} is {} on this machine: ranks of other machines cannot reach it",
                     place.address.host, store_->local().host));
  }
}

void RankSession::serve(Rendezvous& place) {
  if (!server_) server_ = std::make_unique<StoreServer>(place.address, identity_);
  if (place.open()) note(warning_of(place));
}

/// Rank 0 broadcasts the address at which it listens, and a secret of this run.
Rendezvous RankSession::rendezvous_by_mpi() {
  std::vector<int> all(static_cast<std::size_t>(placed_.ranks));
  std::iota(all.begin(), all.end(), 0);
  std::vector<char> message(place_size);
  if (placed_.rank == 0) {
    identity_.secret = random_secret();
    const Address asked = placed_.rendezvous.value_or(Address{});  // or every interface
    server_ = std::make_unique<StoreServer>(asked, identity_);
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    const Address reached = placed_.rendezvous.value_or(Address{host, server_->address().port});
    const Rendezvous own{reached, identity_.secret};
    text_of(own).copy(message.data(), message.size() - 1);
  }
  auto* at = reinterpret_cast<std::byte*>(message.data());
  fabric_->wait(fabric_->start({.kind = models::Collective::broadcast,
                                .group = fabric_->make_group(all),
                                .send = at,
                                .receive = at,
                                .count = static_cast<std::int64_t>(message.size()),
                                .element = Element::byte}));
  return parse_rendezvous(message.data());
}

}  // namespace orrery::executor
