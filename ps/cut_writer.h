#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/rpc/event_loop.h"
#include "ps/store/variable_store.h"

namespace shoal {

// Writes the ready cut of a store to laid-out files (rule 7), chunk by chunk: each is copied on the
// loop and written off it, so that no push waits for more than one copy. Destroying it ends the
// writing after the chunk at hand, and `done` is not called. All calls on the loop's thread.
class CutWriter {
 public:
  // What was written, synced; or the first error.
  using Done = std::function<void(absl::StatusOr<std::vector<WrittenPart>>)>;

  // Begins. `on_chunk` is called when a chunk is in the files, though not synced. `done` is called
  // last and may destroy this; `loop` and `store` outlive this, and `files` the loop's offloaded
  // work.
  CutWriter(EventLoop* loop, FileSystem* files, const VariableStore* store,
            const std::string& directory, std::function<void(int chunk)> on_chunk, Done done);

 private:
  struct Files;

  void WriteNextChunk();
  void Finish();

  EventLoop* const loop_;
  const VariableStore* const store_;
  const std::function<void(int chunk)> on_chunk_;
  const Done done_;
  const std::shared_ptr<Files> files_;  // shared with what runs off the loop
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int next_chunk_ = 0;
};

}  // namespace shoal
