// Stands in for NCCL: communicators of this process, whose sums are of the host's memory and run
// when the last rank has given its own. Each call is taken only when the state has been asked for
// twice. FAKE_NCCL_FAILS names a function that fails, or is "a link": then what was taken does.

#include "tests/worker/compute/cuda/nccl/fake_nccl.h"

#include <nccl.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

namespace {

struct Piece {
  const float* from;
  float* to;
  size_t count;
  float share;
  FakeNcclStream* stream;
};

struct World {
  std::vector<std::deque<Piece>> given;  // by rank
};

std::mutex mutex;
int worlds = 0;
std::map<int, World> all_worlds;

// The first sum of these has run, or will not run any more.
void EndOne(std::deque<Piece>& of_rank) {
  if (FakeNcclStream* const stream = of_rank.front().stream; stream != nullptr) ++stream->ended;
  of_rank.pop_front();
}

bool Fails(const char* name) {
  const char* const failing = std::getenv("FAKE_NCCL_FAILS");
  return failing != nullptr && std::strcmp(failing, name) == 0;
}

}  // namespace

struct ncclComm {
  int world;
  int rank;
  int questions = 2;                 // until a call is taken
  std::map<int, float> shares = {};  // by operator
  int operators = 0;
};

extern "C" {

const char* ncclGetErrorString(ncclResult_t) { return "the fake fails"; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  id->internal[0] = static_cast<char>(++worlds);
  return Fails("ncclGetUniqueId") ? ncclSystemError : ncclSuccess;
}

ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclInProgress; }

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  if (Fails("ncclCommInitRankConfig")) return ncclUnhandledCudaError;
  if (config->blocking != 0) return ncclInvalidUsage;
  const std::lock_guard lock(mutex);
  all_worlds[id.internal[0]].given.resize(ranks);
  *comm = new ncclComm{.world = id.internal[0], .rank = rank};
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  if (Fails("ncclCommGetAsyncError")) return ncclUnhandledCudaError;
  *state = comm->questions-- > 0 ? ncclInProgress : Fails("a link") ? ncclRemoteError : ncclSuccess;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const std::lock_guard lock(mutex);
  std::deque<Piece>& of_rank = all_worlds[comm->world].given[comm->rank];
  while (!of_rank.empty()) EndOne(of_rank);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  if (type != ncclFloat || residence != ncclScalarHostImmediate) return ncclInvalidUsage;
  comm->shares[++comm->operators] = *static_cast<const float*>(scalar);
  *op = static_cast<ncclRedOp_t>(comm->operators);
  return ncclSuccess;
}

ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) {
  return comm->shares.erase(op) == 1 ? ncclSuccess : ncclInvalidArgument;
}

ncclResult_t ncclReduce(const void* from, void* to, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  if (Fails("ncclReduce")) return ncclUnhandledCudaError;
  const auto share = comm->shares.find(op);
  // The call before was not waited for, or the operator is none.
  if (comm->questions > 0 || share == comm->shares.end() || type != ncclFloat || root != 0)
    return ncclInvalidUsage;
  comm->questions = 2;
  const std::lock_guard lock(mutex);
  std::vector<std::deque<Piece>>& given = all_worlds[comm->world].given;
  auto* const counts = reinterpret_cast<FakeNcclStream*>(stream);
  if (counts != nullptr) ++counts->given;
  given[comm->rank].push_back(
      {static_cast<const float*>(from), static_cast<float*>(to), count, share->second, counts});
  for (const std::deque<Piece>& of_rank : given) {
    if (of_rank.empty()) return ncclInProgress;
    if (of_rank.front().count != given[0].front().count) return ncclInvalidUsage;
  }
  std::vector<float> sums(count);
  for (const std::deque<Piece>& of_rank : given) {
    const Piece& piece = of_rank.front();
    for (size_t i = 0; i < count; ++i) sums[i] += piece.share * piece.from[i];
  }
  std::memcpy(given[0].front().to, sums.data(), count * sizeof(float));
  for (std::deque<Piece>& of_rank : given) EndOne(of_rank);
  return ncclInProgress;
}
}
