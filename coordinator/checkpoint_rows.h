#pragma once

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

class CheckpointReader;

// The rows of a checkpoint that is being loaded, for the ps whose machines do not see it. Lives as
// long as the load: while it does, the files stay open, and their room on disk is not freed. Loop
// thread only; files are read in Offload. No callback after destruction.
class CheckpointRows {
 public:
  // Loop and store outlive this.
  CheckpointRows(EventLoop* loop, CheckpointStore* store, StoredCheckpoint checkpoint);
  ~CheckpointRows();
  CheckpointRows(const CheckpointRows&) = delete;
  CheckpointRows& operator=(const CheckpointRows&) = delete;

  // Reads what a ps wants; `done` gets the message for it, with the rows or with an error.
  void Read(const proto::RowsWanted& wanted,
            std::function<void(const proto::ControlRequest&)> done);
  // A ps verifies the files that it has read its rows from. For rows that it was sent, this does:
  // what has changed since the checkpoint was found whole may be in them. OK at once where nothing
  // was read.
  void Verify(std::function<void(const absl::Status&)> done);

 private:
  EventLoop* const loop_;
  CheckpointStore* const store_;
  const StoredCheckpoint checkpoint_;
  // Opened with the first read; used off the loop only.
  const std::shared_ptr<std::unique_ptr<CheckpointReader>> reader_;
  bool read_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace shoal
