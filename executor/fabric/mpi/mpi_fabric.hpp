#pragma once
// The fabric over an MPI library: non-blocking calls of the standard, nothing that is specific to
// one implementation. MPI makes progress inside `test` and `wait`; a wait polls, then yields, then
// sleeps, because ranks may outnumber cores and MPI's own wait spins.

#define OMPI_SKIP_MPICXX 1  // the C interface is all that is wanted
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/fabric/fabric.hpp"

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
  Request send(const TransferCall& call) override;
  Request receive(const TransferCall& call) override;
  bool test(Request request) override;
  void wait(Request request) override;
  void abort(std::string_view why) noexcept override;

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
  template <class Start>
  void start_part(MPI_Comm among, const MemberPart& part, Start start, Work& work);
  /// A transfer as MPI_Isend or MPI_Irecv take it: pieces whose bytes fit in `int`.
  template <class Start>
  Request start_pieces(const TransferCall& call, Start start, const char* name);
  Request keep(Work work);
  bool done(Work& work);
  void finish(Work& work);
  void refuse_if_aborted();

  int rank_ = 0, ranks_ = 1;
  std::vector<MpiGroup> groups_;
  MPI_Op add_fp16_ = MPI_OP_NULL, add_bf16_ = MPI_OP_NULL;
  std::unordered_map<std::uint64_t, Work> requests_;
  std::uint64_t last_request_ = 0;
  std::atomic<bool> aborted_{false};
  std::mutex why_lock_;
  std::string why_;
};

}  // namespace orrery::executor
