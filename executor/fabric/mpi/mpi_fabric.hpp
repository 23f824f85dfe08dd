#pragma once
// The fabric over an MPI library: non-blocking calls of the standard, nothing that is specific to
// one implementation. MPI makes progress inside `test` and `wait`; a wait polls, then yields, then
// sleeps, because ranks may outnumber cores and MPI's own wait spins.

#define OMPI_SKIP_MPICXX 1  // the C interface is all that is wanted
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <memory>
#include <vector>

#include "executor/fabric/open_calls.hpp"

namespace orrery::executor {

class MpiFabric final : public Fabric {
 public:
  /// Initialises MPI. Errors: RunFailure{local_failure}: no thread support; in MPI's own words.
  MpiFabric();
  /// Finalises it, together with all other ranks, unless the run was aborted.
  ~MpiFabric() override;

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  GroupId make_group(std::span<const int> members) override;
  Request start(const CollectiveCall& call) override;
  Request transfer(const TransferCall& call, TransferEnd end) override;
  bool test(Request request) override;
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override { abort_.ask(why); }

 private:
  struct MpiGroup {
    MPI_Comm communicator = MPI_COMM_NULL;
    int index = 0;
  };
  /// Pieces of one call, and what has to be copied when they are done.
  struct Work {
    std::vector<MPI_Request> pieces;
    std::unique_ptr<std::byte[]> staged;
    std::byte* copy_to = nullptr;
    std::size_t copy_size = 0;
  };

  void start_in(const MpiGroup& group, const CollectiveCall& call, Work& work);
  void all_reduce_in_pieces(MPI_Comm among, const CollectiveCall& call, MPI_Op add, Work& work);
  /// A transfer as MPI_Isend or MPI_Irecv take it: pieces whose bytes fit in `int`.
  template <class Start>
  void start_pieces(const TransferCall& call, int tag, Start start, const char* name, Work& work);
  bool done(Work& work);
  void finish(Work& work);

  int rank_ = 0, ranks_ = 1;
  std::vector<MpiGroup> groups_;
  MPI_Op add_fp16_ = MPI_OP_NULL, add_bf16_ = MPI_OP_NULL;
  OpenCalls<Work> requests_;
  FabricAbort abort_;
};

}  // namespace orrery::executor
