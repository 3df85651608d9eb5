#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/checkpoint/cut_directory.h"
#include "common/rpc/scope.h"
#include "ps/cuts/cut_writer.h"
#include "ps/streams/session.h"

namespace shoal {

namespace proto {
class CutRows;
class Fence;
class ReadCut;
class Release;
}  // namespace proto

// The cuts of one timeline, one at a time: rules 6 and 7 of the protocol. Answers the session of
// the last request. Destroying it ends the cut without an answer. Loop thread only.
//
//   none ──Fence──▶ waiting ──all steps below F──▶ ready ──written──▶ ended, or kept until Release:
//    ▲                                                               held for an evaluation, or
//    read └── a newer Fence, in every state, begins again                 by a coordinator whose
//                                                                    directory is not seen here
class Cuts {
 public:
  Cuts(int ps_index, EventLoop* loop, FileSystem* files, VariableStore* store)  // outlive this
      : ps_index_(ps_index), loop_(loop), files_(files), store_(store) {}

  // Rule 6. Requires a Fence of this timeline, with at least the promised term. `checkpoints`: the
  // coordinator's directory for them; empty if it has not named one. Answers every rejection.
  void OnFence(const SessionPtr& session, uint64_t term, const proto::Fence& fence,
               const std::string& checkpoints);
  // Ignores a Release of another term: it does not come from the coordinator of this cut.
  void OnRelease(uint64_t term, const proto::Release& release);
  void OnReadCut(const SessionPtr& session, uint64_t term, const proto::ReadCut& request);
  // Rule 7, after every push.
  void Advance();

 private:
  // The last Fence accepted; kept after its cut has ended, to answer repetitions.
  struct Cut {
    Cut() {}  // spelt out: clang 14 cannot deduce it for std::optional inside this class
    uint64_t term = 0;
    uint64_t step = 0;
    CutPlace place;  // without a directory the cut is not written
    bool hold = false;
    bool dropped = false;            // written chunks are dropped, so the cut cannot be read
    bool not_seen = false;           // this machine does not see the directory
    std::weak_ptr<Session> session;  // of the last request
    bool ready = false;
    std::unique_ptr<CutWriter> writer;  // while it writes
    std::optional<absl::StatusOr<std::vector<WrittenPart>>> written;
  };

  // Returns an error for a cut that no coordinator can request.
  absl::Status CheckPlausible(const CutPlace& place) const;
  // Tells the session that requested the cut that a Fence over another stream replaces it.
  void SendReplaced(const SessionPtr& by) const;
  void CheckDirectory();
  void OnDirectoryChecked(const absl::StatusOr<bool>& seen);
  void Write(bool seen);
  void DropSlots();
  void OnWritten(absl::StatusOr<std::vector<WrittenPart>> result);
  // Adds the values, unless the cut is dropped.
  void FillRows(proto::CutRows* rows) const;
  void SendReady() const;
  void SendWritten() const;

  const int ps_index_;
  EventLoop* const loop_;
  FileSystem* const files_;
  VariableStore* const store_;
  std::optional<Cut> cut_;
  std::optional<Scope> directory_check_;  // the pending check for the marker
  const Scope scope_{loop_};
};

}  // namespace shoal
