#pragma once
// The contract of executor/fabric/fabric.hpp as a test that every fabric passes. Runs on all ranks
// at once, each with its own fabric; what is wrong comes back as sentences, for threads may not use
// the test library. Addends are small integers, so sums are exact in every format.

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "executor/device/half.hpp"
#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

using Bytes_ = std::vector<std::byte>;

/// `value` as an element, at `to`. In the ring it is spread over all 64 bits, so sums wrap.
inline void put_element(Element element, std::int64_t value, std::byte* to) {
  const auto as = [&](auto typed) { std::memcpy(to, &typed, sizeof typed); };
  Fp16 half;
  Bf16 brain;
  switch (element) {
    case Element::byte:
      return as(static_cast<std::uint8_t>(value));
    case Element::fp16:
      return narrow(static_cast<float>(value), half), as(half);
    case Element::bf16:
      return narrow(static_cast<float>(value), brain), as(brain);
    case Element::fp32:
      return as(static_cast<float>(value));
    case Element::fp64:
      return as(static_cast<double>(value));
    case Element::ring:
      return as(static_cast<std::uint64_t>(value) * 0x9e3779b97f4a7c15U);
  }
}

/// Of member `m` at position `i`: at most 7 (m + 1), so four members' sum stays below 256.
inline std::int64_t element_of(int m, std::int64_t i) {
  return (m + 1) * (i % 7 + 1) % 61;
}

struct FabricGroup {
  std::string name{};
  GroupId id = 0;
  std::vector<int> members{};
  int index = -1;
};

class Conformance {
 public:
  explicit Conformance(Fabric& fabric) : fabric_{fabric} {
    const int n = fabric.ranks();
    std::vector<int> world, reversed, even, pair{0, n - 1};
    for (int r = 0; r < n; ++r) world.push_back(r);
    reversed.assign(world.rbegin(), world.rend());
    for (int r = 0; r < n; r += 2) even.push_back(r);
    add("world", world);
    add("reversed", reversed);
    add("even", even);
    if (n > 1) add("pair", pair);
    for (int r = 0; r < n; ++r) add("alone", {r});
  }

  /// Everything that is wrong, in sentences.
  std::vector<std::string> run() {
    for (const FabricGroup& group : groups_) {
      if (group.index < 0) continue;
      const std::int64_t n = static_cast<std::int64_t>(group.members.size());
      for (const Element element : elements) {
        for (const std::int64_t count : {std::int64_t{0}, std::int64_t{1}, n, std::int64_t{1001}}) {
          for (const bool in_place : {false, true}) collectives(group, element, count, in_place);
        }
      }
      // Several chunks for every member.
      collectives(group, Element::fp32, 70'001 * n, false);
      collectives(group, Element::bf16, 70'001 * n, true);
      transfers(group);
      for (const std::int64_t unit : {1, 997, 40'003}) parts(group, unit);
      many_in_flight(group);
    }
    return wrong_;
  }

 private:
  using Kind = models::Collective;
  static constexpr Element elements[] = {Element::byte, Element::fp16, Element::bf16,
                                         Element::fp32, Element::fp64, Element::ring};

  void add(const std::string& name, const std::vector<int>& members) {
    FabricGroup group{name, fabric_.make_group(members), members, -1};
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (members[i] == fabric_.rank()) group.index = static_cast<int>(i);
    }
    groups_.push_back(group);
    const int n = static_cast<int>(members.size());
    for (int from = 0; n > 1 && from < n; ++from) {
      fabric_.connect(group.id, from, (from + 1) % n);
    }
  }

  static Bytes_ filled(Element element, std::int64_t count, int member) {
    Bytes_ all(static_cast<std::size_t>(count * size_of(element)));
    for (std::int64_t i = 0; i < count; ++i) {
      put_element(element, element_of(member, i), all.data() + i * size_of(element));
    }
    return all;
  }

  void expect(const Bytes_& found, const Bytes_& expected, const std::string& what) {
    if (found == expected) return;
    wrong_.push_back("rank " + std::to_string(fabric_.rank()) + ": " + what);
  }

  void collectives(const FabricGroup& group, Element element, std::int64_t count, bool in_place) {
    if (element != Element::byte) {
      all_reduce(group, element, count, in_place);
      reduce_scatter(group, element, count, in_place);
    }
    all_gather(group, element, count, in_place);
    all_to_all(group, element, count, in_place);
    broadcast(group, element, count, in_place);
  }

  std::string described(const char* kind, const FabricGroup& group, Element element,
                        std::int64_t count, bool in_place) const {
    return std::string{kind} + " of " + std::to_string(count) + " elements of kind " +
           std::to_string(static_cast<int>(element)) + " in " + group.name +
           (in_place ? ", in place" : "");
  }

  void do_call(const FabricGroup& group, Kind kind, const std::byte* send, std::byte* receive,
               std::int64_t count, Element element, int root = 0) {
    fabric_.wait(fabric_.start({.kind = kind,
                                .group = group.id,
                                .send = send,
                                .receive = receive,
                                .count = count,
                                .element = element,
                                .root = root}));
  }

  /// Sum over the members of what they hold at first + i.
  static Bytes_ summed(const FabricGroup& group, Element element, std::int64_t first,
                       std::int64_t count) {
    Bytes_ all(static_cast<std::size_t>(count * size_of(element)));
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t sum = 0;
      for (std::size_t m = 0; m < group.members.size(); ++m) {
        sum += element_of(static_cast<int>(m), first + i);
      }
      put_element(element, sum, all.data() + i * size_of(element));
    }
    return all;
  }

  void all_reduce(const FabricGroup& group, Element element, std::int64_t count, bool in_place) {
    const Bytes_ send = filled(element, count, group.index);
    Bytes_ receive = in_place ? send : Bytes_(send.size());
    do_call(group, Kind::all_reduce, in_place ? receive.data() : send.data(), receive.data(), count,
            element);
    expect(receive, summed(group, element, 0, count),
           described("all_reduce", group, element, count, in_place));
    if (!in_place)
      expect(send, filled(element, count, group.index), "all_reduce wrote what it sends");
  }

  void reduce_scatter(const FabricGroup& group, Element element, std::int64_t count,
                      bool in_place) {
    const auto n = static_cast<std::int64_t>(group.members.size());
    Bytes_ send = filled(element, count * n, group.index);
    const Bytes_ before = send;
    const std::int64_t size = count * size_of(element);
    Bytes_ apart(static_cast<std::size_t>(size));
    std::byte* receive = in_place ? send.data() + group.index * size : apart.data();
    do_call(group, Kind::reduce_scatter, send.data(), receive, count, element);
    expect({receive, receive + size}, summed(group, element, group.index * count, count),
           described("reduce_scatter", group, element, count, in_place));
    if (!in_place) expect(send, before, "reduce_scatter wrote what it sends");
  }

  void all_gather(const FabricGroup& group, Element element, std::int64_t count, bool in_place) {
    const Bytes_ own = filled(element, count, group.index);
    Bytes_ whole(own.size() * group.members.size()), expected;
    const std::byte* send = own.data();
    if (in_place && !own.empty()) {
      std::byte* place = whole.data() + own.size() * static_cast<std::size_t>(group.index);
      std::memcpy(place, own.data(), own.size());
      send = place;
    }
    do_call(group, Kind::all_gather, send, whole.data(), count, element);
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      const Bytes_ part = filled(element, count, static_cast<int>(m));
      expected.insert(expected.end(), part.begin(), part.end());
    }
    expect(whole, expected, described("all_gather", group, element, count, in_place));
  }

  void all_to_all(const FabricGroup& group, Element element, std::int64_t count, bool in_place) {
    // Part p of member m is what member m n + p would hold.
    const int n = static_cast<int>(group.members.size());
    Bytes_ send, expected;
    for (int p = 0; p < n; ++p) {
      const Bytes_ out = filled(element, count, group.index * n + p);
      const Bytes_ in = filled(element, count, p * n + group.index);
      send.insert(send.end(), out.begin(), out.end());
      expected.insert(expected.end(), in.begin(), in.end());
    }
    Bytes_ receive(send.size());
    do_call(group, Kind::all_to_all, send.data(), in_place ? send.data() : receive.data(), count,
            element);
    expect(in_place ? send : receive, expected,
           described("all_to_all", group, element, count, in_place));
  }

  /// Member m gives member p parts of (m + 2 p + k) % 4 units, k = 0, 1, 2; those of none are left
  /// out, so that a pair may have nothing for each other.
  static std::vector<std::int64_t> part_sizes(int from, int to, std::int64_t unit) {
    std::vector<std::int64_t> sizes;
    for (int k = 0; k < 3; ++k) {
      if (const int units = (from + 2 * to + k) % 4; units > 0) sizes.push_back(units * unit);
    }
    return sizes;
  }

  void parts(const FabricGroup& group, std::int64_t unit) {
    const int n = static_cast<int>(group.members.size());
    Bytes_ send, receive, expected;
    std::vector<MemberPart> send_parts, receive_parts;
    const auto add = [&](std::vector<MemberPart>& to, int member, std::int64_t bytes) {
      to.push_back({member, nullptr, bytes});
    };
    for (int p = 0; p < n; ++p) {
      for (const std::int64_t bytes : part_sizes(group.index, p, unit)) {
        const Bytes_ out = filled(Element::byte, bytes, group.index * n + p);
        send.insert(send.end(), out.begin(), out.end());
        add(send_parts, p, bytes);
      }
      for (const std::int64_t bytes : part_sizes(p, group.index, unit)) {
        const Bytes_ in = filled(Element::byte, bytes, p * n + group.index);
        expected.insert(expected.end(), in.begin(), in.end());
        add(receive_parts, p, bytes);
      }
    }
    receive.resize(expected.size());
    std::byte *out = send.data(), *in = receive.data();
    for (MemberPart& each : send_parts) each.at = std::exchange(out, out + each.bytes);
    for (MemberPart& each : receive_parts) each.at = std::exchange(in, in + each.bytes);
    fabric_.wait(fabric_.start({.kind = Kind::all_to_all_v,
                                .group = group.id,
                                .element = Element::byte,
                                .send_parts = send_parts,
                                .receive_parts = receive_parts}));
    expect(receive, expected,
           "all_to_all_v in units of " + std::to_string(unit) + " in " + group.name);
  }

  void broadcast(const FabricGroup& group, Element element, std::int64_t count, bool in_place) {
    const int root = static_cast<int>(group.members.size()) - 1;
    const Bytes_ own = filled(element, count, group.index);
    Bytes_ receive = in_place ? own : Bytes_(own.size());
    do_call(group, Kind::broadcast, in_place ? receive.data() : own.data(), receive.data(), count,
            element, root);
    expect(receive, filled(element, count, root),
           described("broadcast", group, element, count, in_place));
  }

  /// To the next and from the one before, of all sizes, all of them started before any is waited
  /// for; the k-th meets the k-th.
  void transfers(const FabricGroup& group) {
    const int n = static_cast<int>(group.members.size());
    if (n == 1) return;
    const int next = (group.index + 1) % n, previous = (group.index + n - 1) % n;
    const std::int64_t sizes[] = {0, 1, 5, 4096, 3'000'000, 17, 0, 100'000};
    std::vector<Bytes_> sent, received;
    for (std::size_t k = 0; k < std::size(sizes); ++k) {
      sent.push_back(filled(Element::byte, sizes[k], group.index + static_cast<int>(k)));
      received.emplace_back(static_cast<std::size_t>(sizes[k]));
    }
    std::vector<Request> requests;
    for (std::size_t k = 0; k < std::size(sizes); ++k) {
      // Every other receive is posted late, so that some messages come before it.
      requests.push_back(fabric_.send(
          {.group = group.id, .peer = next, .buffer = sent[k].data(), .bytes = sizes[k]}));
    }
    for (std::size_t k = 0; k < std::size(sizes); ++k) {
      requests.push_back(fabric_.receive(
          {.group = group.id, .peer = previous, .buffer = received[k].data(), .bytes = sizes[k]}));
      if (k % 2 == 0) fabric_.test(requests.back());
    }
    while (!requests.empty()) {
      fabric_.wait(requests.back());
      requests.pop_back();
    }
    for (std::size_t k = 0; k < std::size(sizes); ++k) {
      expect(received[k], filled(Element::byte, sizes[k], previous + static_cast<int>(k)),
             "transfer " + std::to_string(k) + " in " + group.name);
    }
  }

  /// 24 collectives at once with transfers between them, waited for from the last to the first.
  void many_in_flight(const FabricGroup& group) {
    constexpr std::int64_t count = 30'011;
    const int n = static_cast<int>(group.members.size());
    std::vector<Bytes_> buffers, messages;
    for (int k = 0; k < 24; ++k) {
      buffers.push_back(filled(Element::fp32, count, group.index));
      messages.push_back(filled(Element::byte, 1000 + k, group.index));
    }
    std::vector<Request> requests;
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      std::byte* buffer = buffers[k].data();
      requests.push_back(fabric_.start({.kind = Kind::all_reduce,
                                        .group = group.id,
                                        .send = buffer,
                                        .receive = buffer,
                                        .count = k % 3 == 0 ? 5 : count}));
      if (n < 2) continue;
      const TransferCall call{.group = group.id,
                              .peer = group.index == 0 ? 1 : 0,
                              .buffer = messages[k].data(),
                              .bytes = static_cast<std::int64_t>(messages[k].size())};
      if (group.index == 0) requests.push_back(fabric_.send(call));
      if (group.index == 1) requests.push_back(fabric_.receive(call));
    }
    while (!requests.empty()) {
      fabric_.wait(requests.back());
      requests.pop_back();
    }
    for (std::size_t k = 0; k < buffers.size(); ++k) {
      Bytes_ expected = filled(Element::fp32, count, group.index);
      const Bytes_ sum = summed(group, Element::fp32, 0, k % 3 == 0 ? 5 : count);
      std::copy(sum.begin(), sum.end(), expected.begin());
      expect(buffers[k], expected, "in flight: collective " + std::to_string(k));
      if (n > 1 && group.index == 1) {
        expect(messages[k], filled(Element::byte, 1000 + static_cast<int>(k), 0),
               "in flight: transfer " + std::to_string(k));
      }
    }
  }

  Fabric& fabric_;
  std::vector<FabricGroup> groups_;
  std::vector<std::string> wrong_;
};

/// Empty: the fabric keeps its contract.
inline std::vector<std::string> broken_promises(Fabric& fabric) {
  return Conformance{fabric}.run();
}

}  // namespace orrery::executor
