// What reaches the store from another process: greetings, requests, beats and verdicts. The first
// byte says which; whatever follows is refused or read, and a request has one answer or waits for
// one.
#include <algorithm>
#include <map>

#include "executor/launch/rendezvous.hpp"
#include "executor/launch/store_table.hpp"
#include "executor/launch/vital_signs.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace orrery::executor {
namespace {

const StoreIdentity identity{.job = "j", .ranks = 2, .secret = Secret{1}};

void require(bool holds) {
  if (!holds) std::abort();
}

/// As it comes; no more than 4 KiB of it is asked for.
void greet_with(std::string_view bytes) {
  HandshakeServer keeper{Service::store, identity, Nonce{}};
  std::size_t asked = 0;
  while (keeper.wanted() > 0 && keeper.wanted() <= bytes.size()) {
    asked += keeper.wanted();
    const std::string_view role = bytes.substr(0, keeper.wanted());
    bytes.remove_prefix(role.size());
    if (keeper.receive(role) == HandshakeServer::Result::refused) {
      require(keeper.answer() == HandshakeServer::refusal());
      break;
    }
  }
  require(asked <= 4096);
}

/// By somebody who knows the secret and claims anything.
void claim(std::string_view claims) {
  HandshakeServer keeper{Service::store, identity, Nonce{}};
  const std::string nonce(32, 'n');
  keeper.receive("ORRERYST" + FrameWriter{}.number(2, 4).bytes() + nonce);
  const std::string theirs = keeper.answer();
  if (keeper.receive(FrameWriter{}.number(claims.size(), 4).bytes()) !=
      HandshakeServer::Result::more)
    return;
  std::string message = "cORRERYST" + nonce + theirs;
  message.append(claims);
  std::string shown{claims};
  shown += proof(identity.secret, message);
  if (keeper.receive(shown) != HandshakeServer::Result::accepted) return;
  require(keeper.claims().rank >= 0 && keeper.claims().rank < identity.ranks);
}

/// Frames of two ranks, each after a byte that says whose it is and one with its size.
void ask(std::string_view bytes) {
  std::map<ClientId, int> answers;
  StoreTable table{2, [&](ClientId id, const std::string&) { ++answers[id]; }};
  const auto join = [&](ClientId id) {
    require(table.join(id, {"abort", "rank vanished"}));
    answers[id] = 0;
  };
  for (const int rank : {0, 1}) join({rank, PeerRole::rank});
  while (bytes.size() >= 2) {
    const ClientId id{bytes[0] & 1, PeerRole::rank};
    const std::size_t size =
        std::min<std::size_t>(static_cast<unsigned char>(bytes[1]), bytes.size() - 2);
    const int before = answers[id];
    const auto served = table.serve(id, bytes.substr(2, size));
    bytes.remove_prefix(2 + size);
    require(answers[id] - before == (served == StoreTable::Served::answered ? 1 : 0));
    const bool waits = table.patience(id).has_value();
    require(served == StoreTable::Served::refused ||
            waits == (served == StoreTable::Served::waits));
    if (served == StoreTable::Served::waits && (size & 1) != 0) table.give_up(id);
    if (served != StoreTable::Served::refused) continue;
    table.lose(id);
    join(id);
  }
}

/// What is read is what was written.
void read_signs(std::string_view bytes) {
  if (const auto verdict = parse_verdict(bytes, 2)) {
    require(verdict->code != Exit::done && text_of(*verdict) == bytes);
  }
  if (const auto beat = parse_beat(bytes)) {
    const std::string written = text_of(*beat);  // times beyond any run's are cut
    require(text_of(*parse_beat(written)) == written);
  }
  try {
    parse_rendezvous(std::string{bytes});
  } catch (const RunFailure&) {  // the one way to refuse it
  }
}

}  // namespace
}  // namespace orrery::executor

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  if (size == 0) return 0;
  const std::string_view bytes = text_of(data + 1, size - 1);
  switch (data[0] % 4) {
    case 0:
      executor::greet_with(bytes);
      break;
    case 1:
      executor::claim(bytes);
      break;
    case 2:
      executor::ask(bytes);
      break;
    default:
      executor::read_signs(bytes);
  }
  return 0;
}
