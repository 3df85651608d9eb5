#include "cli/train/free_run.h"

#include <chrono>
#include <memory>

#include "common/daemon/process_mark.h"
#include "common/rpc/grpc_network.h"
#include "coordinator/run_lease.h"

namespace shoal {
namespace {

constexpr Time kPatience = std::chrono::seconds(3);
constexpr Time kSayAgain = std::chrono::seconds(10);

}  // namespace

absl::Status AwaitFreeRun(const RunPaths& paths, const std::string& address,
                          const std::function<void(const std::string&)>& say) {
  const std::unique_ptr<GrpcNetwork> loop = GrpcNetwork::Create({});
  absl::Status result;
  LeaseHolder self = ThisProcess();
  self.address = address;
  RunLease lease({.loop = loop.get(),
                  .files = RealFileSystem(),
                  .directory = paths.lease(),
                  .self = self,
                  .is_gone = IsProcessGone,
                  .on_lost = [&result](const absl::Status& status) { result = status; }});
  lease.Acquire(/*ps=*/{}, [&](const absl::Status& status) {
    result = status;
    lease.Release();
    loop->Offload([] {}, [&loop] { loop->Stop(); });  // once that is written
  });
  const std::function<void(Time)> say_after = [&](Time delay) {
    loop->CallAfter(delay, [&] {
      if (const std::string waiting = lease.Waiting(); !waiting.empty())
        say("waiting for " + waiting);
      say_after(kSayAgain);
    });
  };
  say_after(kPatience);
  loop->Run();
  return result;
}

}  // namespace shoal
