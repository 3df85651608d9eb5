#include "cli/train/free_run.h"

#include <chrono>
#include <memory>

#include "common/daemon/process/process_mark.h"
#include "common/rpc/grpc/grpc_network.h"
#include "coordinator/takeover/run_lock.h"

namespace shoal {
namespace {

constexpr Time kPatience = std::chrono::seconds(3);
constexpr Time kReminderPeriod = std::chrono::seconds(10);

}  // namespace

absl::Status AwaitFreeRun(const RunPaths& paths, const std::string& address,
                          const std::function<void(const std::string&)>& say) {
  const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({});
  EventLoop* const loop = network->loop();
  absl::Status result;
  LeaseHolder self = ThisProcess();
  self.address = address;
  RunLock lease({.loop = loop,
                 .files = RealFileSystem(),
                 .directory = paths.lease(),
                 .self = self,
                 .is_gone = IsProcessGone});
  lease.Acquire(/*ps=*/{}, [&](const absl::Status& status) {
    result = status;
    lease.Release();
    loop->Offload(
        Lane::kBrief, [] {}, [loop] { loop->Stop(); });  // after the release is written
  });
  const std::function<void(Time)> remind_after = [&](Time delay) {
    loop->CallAfter(delay, [&] {
      const std::string waiting = lease.Waiting();
      say("waiting for " +
          (waiting.empty() ? "the run directory: its disk does not answer" : waiting));
      remind_after(kReminderPeriod);
    });
  };
  remind_after(kPatience);
  network->Run();
  return result;
}

}  // namespace shoal
