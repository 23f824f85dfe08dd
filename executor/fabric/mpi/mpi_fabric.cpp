#include "executor/fabric/mpi/mpi_fabric.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "executor/device/copy_bytes.hpp"
#include "executor/device/half.hpp"
#include "executor/errors.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr std::int64_t largest_piece = std::int64_t{1} << 30;  // elements: MPI counts in `int`
constexpr int tag_of_transfers = 0, tag_of_parts = 1;  // MPI keeps the order between two ranks

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int size = 0;
  MPI_Error_string(status, text, &size);
  throw RunFailure{Exit::peer_failed, std::string{call} + ": " + text};
}

template <class Half>
void add_halves(void* in, void* inout, int* count, MPI_Datatype*) {
  const Half* from = static_cast<const Half*>(in);
  Half* to = static_cast<Half*>(inout);
  for (int i = 0; i < *count; ++i) narrow(widened(from[i]) + widened(to[i]), to[i]);
}

MPI_Datatype type_of(Element element) {
  switch (element) {
    case Element::byte:
      return MPI_BYTE;
    case Element::fp16:
    case Element::bf16:
      return MPI_UINT16_T;
    case Element::fp32:
      return MPI_FLOAT;
    case Element::fp64:
      return MPI_DOUBLE;
    case Element::ring:
      return MPI_UINT64_T;
  }
  return MPI_BYTE;
}

/// An element count that MPI can take.
int counted(std::int64_t count) {
  if (count > largest_piece) {
    throw RunFailure{Exit::invalid_program,
                     "a collective of more than 2^30 elements: MPI's counts "
                     "end there; use --fabric tcp or smaller buckets"};
  }
  return static_cast<int>(count);
}

/// Set unless the user has: Open MPI only yields by itself when it knows that ranks outnumber
/// cores, and its single-copy transport warns in containers that forbid it.
void advise_open_mpi() {
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_btl_vader_single_copy_mechanism", "none", 0);
}

}  // namespace

MpiFabric::MpiFabric() {
  advise_open_mpi();
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED) {
    throw RunFailure{Exit::local_failure,
                     "this MPI does not support threads (MPI_THREAD_FUNNELED)"};
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &ranks_), "MPI_Comm_size");
  check(MPI_Op_create(add_halves<Fp16>, 1, &add_fp16_), "MPI_Op_create");
  check(MPI_Op_create(add_halves<Bf16>, 1, &add_bf16_), "MPI_Op_create");
}

MpiFabric::~MpiFabric() {
  if (abort_.asked() || std::uncaught_exceptions() > 0) return;  // peers will not finalise
  MPI_Op_free(&add_fp16_);
  MPI_Op_free(&add_bf16_);
  MPI_Finalize();
}

GroupId MpiFabric::make_group(std::span<const int> members) {
  MpiGroup group;
  group.index = index_in(members, rank_);
  const bool member = group.index >= 0;
  check(
      MPI_Comm_split(MPI_COMM_WORLD, member ? 0 : MPI_UNDEFINED, group.index, &group.communicator),
      "MPI_Comm_split");
  if (member) MPI_Comm_set_errhandler(group.communicator, MPI_ERRORS_RETURN);
  groups_.push_back(group);
  return static_cast<GroupId>(groups_.size() - 1);
}

template <class Start>
void MpiFabric::start_pieces(const TransferCall& call, int tag, Start start, const char* name,
                             Work& work) {
  const MPI_Comm communicator = groups_.at(call.group).communicator;
  for (std::int64_t at = 0; at == 0 || at < call.bytes; at += largest_piece) {
    check(start(call.buffer + at, counted(std::min(largest_piece, call.bytes - at)), MPI_BYTE,
                call.peer, tag, communicator, &work.pieces.emplace_back(MPI_REQUEST_NULL)),
          name);
  }
}

void MpiFabric::all_reduce_in_pieces(MPI_Comm among, const CollectiveCall& call, MPI_Op add,
                                     Work& work) {
  work.pieces.reserve(static_cast<std::size_t>(call.count / largest_piece + 1));
  for (std::int64_t at = 0; at < call.count; at += largest_piece) {
    const std::int64_t offset = at * size_of(call.element);
    const void* part = call.send == call.receive ? MPI_IN_PLACE : call.send + offset;
    check(MPI_Iallreduce(part, call.receive + offset,
                         counted(std::min(largest_piece, call.count - at)), type_of(call.element),
                         add, among, &work.pieces.emplace_back(MPI_REQUEST_NULL)),
          "MPI_Iallreduce");
  }
}

void MpiFabric::start_in(const MpiGroup& group, const CollectiveCall& call, Work& work) {
  using models::Collective;
  const MPI_Datatype type = type_of(call.element);
  const std::int64_t size = call.count * size_of(call.element);
  const MPI_Op add = call.element == Element::fp16   ? add_fp16_
                     : call.element == Element::bf16 ? add_bf16_
                                                     : MPI_SUM;
  const void* send = call.send == call.receive ? MPI_IN_PLACE : call.send;
  MPI_Comm comm = group.communicator;
  const auto piece = [&]() -> MPI_Request* { return &work.pieces.emplace_back(MPI_REQUEST_NULL); };
  switch (call.kind) {
    case Collective::all_reduce:
      return all_reduce_in_pieces(comm, call, add, work);
    case Collective::reduce_scatter:
      // In place, MPI would put the sum at the beginning of the buffer, so it is staged.
      work.staged.reset(new std::byte[static_cast<std::size_t>(size)]);
      work.copy_to = call.receive;
      work.copy_size = static_cast<std::size_t>(size);
      return check(MPI_Ireduce_scatter_block(call.send, work.staged.get(), counted(call.count),
                                             type, add, comm, piece()),
                   "MPI_Ireduce_scatter_block");
    case Collective::all_gather:
      if (call.send == call.receive + group.index * size) send = MPI_IN_PLACE;
      return check(MPI_Iallgather(send, counted(call.count), type, call.receive,
                                  counted(call.count), type, comm, piece()),
                   "MPI_Iallgather");
    case Collective::broadcast:
      if (group.index == call.root && call.receive != call.send) {
        copy_bytes(call.receive, call.send, size);
      }
      return check(MPI_Ibcast(call.receive, counted(call.count), type, call.root, comm, piece()),
                   "MPI_Ibcast");
    case Collective::all_to_all:
      return check(MPI_Ialltoall(send, counted(call.count), type, call.receive, counted(call.count),
                                 type, comm, piece()),
                   "MPI_Ialltoall");
    case Collective::all_to_all_v: {
      const char* const name = "a part of an all-to-all-v";
      const auto part = [&](const MemberPart& of) {
        return TransferCall{call.group, of.member, of.at, of.bytes};
      };
      for (const auto& each : call.receive_parts) {
        start_pieces(part(each), tag_of_parts, MPI_Irecv, name, work);
      }
      for (const auto& each : call.send_parts) {
        start_pieces(part(each), tag_of_parts, MPI_Isend, name, work);
      }
      return;
    }
    case Collective::reduce:
    case Collective::gather:
    case Collective::scatter:
    case Collective::send_receive:
      break;
  }
  throw ContractError{"a fabric has no such collective"};
}

Request MpiFabric::start(const CollectiveCall& call) {
  abort_.refuse_if_asked();
  const MpiGroup& group = groups_.at(call.group);
  ensure(group.communicator != MPI_COMM_NULL, "a rank calls in a group that it is no member of");
  Work work;
  if (call.count > 0 || call.kind == models::Collective::all_to_all_v) {
    start_in(group, call, work);
  }
  return requests_.keep(std::move(work));
}

Request MpiFabric::transfer(const TransferCall& call, TransferEnd end) {
  abort_.refuse_if_asked();
  Work work;
  if (end == TransferEnd::sends) {
    start_pieces(call, tag_of_transfers, MPI_Isend, "MPI_Isend", work);
  } else {
    start_pieces(call, tag_of_transfers, MPI_Irecv, "MPI_Irecv", work);
  }
  return requests_.keep(std::move(work));
}

bool MpiFabric::done(Work& work) {
  int all = 1;
  check(MPI_Testall(static_cast<int>(work.pieces.size()), work.pieces.data(), &all,
                    MPI_STATUSES_IGNORE),
        "MPI_Testall");
  return all != 0;
}

bool MpiFabric::test(Request request) {
  abort_.refuse_if_asked();
  Work& work = requests_.at(request);
  if (!done(work)) return false;
  finish(work);
  return true;
}

void MpiFabric::finish(Work& work) {
  if (work.copy_to != nullptr) copy_bytes(work.copy_to, work.staged.get(), work.copy_size);
  work.copy_to = nullptr;
}

void MpiFabric::wait(Request request) {
  Work& work = requests_.at(request);
  constexpr int looks = 50, yields = 2000;
  for (int i = 0; !done(work); ++i) {
    abort_.refuse_if_asked();
    if (i > yields) {
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    } else if (i > looks) {
      sched_yield();
    }
  }
  finish(work);
  requests_.erase(request);
}

}  // namespace orrery::executor

/// Entry point of the module.
extern "C" orrery::executor::Fabric* orrery_mpi_fabric() {
  return new orrery::executor::MpiFabric;
}
