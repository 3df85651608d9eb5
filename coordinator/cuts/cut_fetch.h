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
#include "common/rpc/windowed_fetch.h"
#include "common/sharding/shard_map.h"
#include "proto/parameter_server.pb.h"

namespace shoal {

// Fetches the cut of a ps whose machine does not see the checkpoint's directory, and writes it
// there. Handles a few parts of chunks at a time and writes them off the loop. Loop thread only.
class CutFetch {
 public:
  struct Options {
    EventLoop* loop = nullptr;  // these outlive this
    FileSystem* files = nullptr;
    const CheckpointLayout* layout = nullptr;  // its files are in `directory`
    const std::vector<Variable>* variables = nullptr;
    const ShardMap* shard_map = nullptr;
    std::vector<std::string> slots;  // of the optimizer
    int ps = 0;
    std::string directory;
    uint64_t cut_step = 0;
    std::function<void(const proto::ControlRequest&)> send;  // to the ps
    // Called once with the written and synced parts, or with an error. May destroy this.
    std::function<void(absl::StatusOr<std::vector<WrittenPart>>)> done;
  };
  // Begins to fetch.
  explicit CutFetch(Options options);

  void OnRows(const proto::CutRows& rows);
  // The stream to the ps is new: requests again the parts that have not arrived.
  void Resend() { fetch_.Resend(); }

 private:
  // Part 0 of a chunk is its values; part i is slot i - 1.
  using Part = std::pair<int, int>;  // chunk, part
  struct Output;

  static std::vector<Part> PartsOf(const Options& options);
  void Ask(const Part& part);
  void Write(const proto::CutRows& rows);
  void Finish();
  void End(absl::StatusOr<std::vector<WrittenPart>> result);

  const Options options_;
  WindowedFetch<Part> fetch_;  // a part is received while it is written
  bool ended_ = false;
  const std::shared_ptr<Output> output_;  // shared with the writes off the loop
  const Scope scope_{options_.loop};
};

}  // namespace shoal
