#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint_layout.h"
#include "common/model/variable.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/scope.h"
#include "common/sharding/shard_map.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Reads the cut of one ps, whose machine does not see the directory of the checkpoint, and writes
// it there: a few chunks at a time, written off the loop. Loop thread only.
class CutFetch {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = nullptr;
    const CheckpointLayout* layout = nullptr;  // whose files are in `directory`
    const std::vector<Variable>* variables = nullptr;
    const ShardMap* shard_map = nullptr;
    std::vector<std::string> slots;  // of the optimizer
    int ps = 0;
    std::string directory;
    uint64_t cut_step = 0;
    std::function<void(const proto::ControlRequest&)> send;  // to the ps
    // What was written, synced, or why not; once, and may destroy this.
    std::function<void(absl::StatusOr<std::vector<WrittenPart>>)> done;
  };
  // Begins.
  explicit CutFetch(Options options);

  void OnRows(const proto::CutRows& rows);
  // The stream to the ps is new: asks again for what has not come.
  void Resend();

 private:
  // Part 0 of a chunk are its values, part i is slot i - 1.
  using Part = std::pair<int, int>;  // chunk, part
  struct Output;

  void AskForMore();
  void Ask(const Part& part);
  void Write(const proto::CutRows& rows);
  void Finish();
  void End(absl::StatusOr<std::vector<WrittenPart>> result);

  const Options options_;
  std::vector<Part> parts_;
  size_t next_ = 0;          // first that has not been asked for
  std::vector<Part> asked_;  // and not come
  int writing_ = 0;
  bool ended_ = false;
  const std::shared_ptr<Output> output_;  // shared with what runs off the loop
  const Scope scope_{options_.loop};
};

}  // namespace shoal
