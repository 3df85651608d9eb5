#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "ps/store/variable_store.h"

namespace shoal {

// Writes the ready cut of a store to laid-out files (rule 7), chunk by chunk. Copies a chunk on the
// loop and writes it off the loop. So no push waits for more than one copy. Destroying it ends the
// writing after the chunk at hand, without a call of `done`. All calls on the loop's thread.
class CutWriter {
 public:
  // Gets the parts that are written and synced, or the first error.
  using Done = std::function<void(absl::StatusOr<std::vector<WrittenPart>>)>;

  // Begins. Calls `on_chunk` when a chunk is in the files, though not synced, and `done` last,
  // which may destroy this. `loop` and `store` outlive this, and `files` the loop's offloaded work.
  CutWriter(EventLoop* loop, FileSystem* files, const VariableStore* store,
            const std::string& directory, std::function<void(int chunk)> on_chunk, Done done);

 private:
  struct Files;

  void WriteNextChunk();
  void Finish();

  const VariableStore* const store_;
  const std::function<void(int chunk)> on_chunk_;
  const Done done_;
  const std::shared_ptr<Files> files_;  // shared with the writes off the loop
  int next_chunk_ = 0;
  const Scope scope_;
};

}  // namespace shoal
