#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"

namespace shoal {

class CheckpointReader;

// Reads the rows of a checkpoint for tasks whose machines do not see its files: ps that load it,
// and the evaluator. While this lives, the files stay open, and their disk space is not freed. Loop
// thread only; files are read in Offload. No callback after destruction.
class CheckpointRows {
 public:
  // Loop and store outlive this.
  CheckpointRows(EventLoop* loop, CheckpointStore* store, StoredCheckpoint checkpoint);
  CheckpointRows(const CheckpointRows&) = delete;
  CheckpointRows& operator=(const CheckpointRows&) = delete;

  struct Part {
    std::string tensor;  // VARIABLE or SLOT/VARIABLE
    uint64_t offset_bytes = 0;
    uint32_t size_bytes = 0;
  };
  // Reads part of a tensor and passes its bytes to `done`. kInvalidArgument: the part is larger
  // than a chunk. Other errors come from CheckpointReader.
  void Read(const Part& part, std::function<void(absl::StatusOr<std::string>)> done);
  // Verifies the files after rows were read from them, as they may have changed since the
  // checkpoint was verified. A ps that reads the files itself verifies them itself. OK at once if
  // nothing was read.
  void Verify(std::function<void(const absl::Status&)> done);

 private:
  CheckpointStore* const store_;
  const StoredCheckpoint checkpoint_;
  // Opened with the first read; used off the loop only.
  const std::shared_ptr<std::unique_ptr<CheckpointReader>> reader_;
  bool read_ = false;
  const Scope scope_;
};

}  // namespace shoal
