#include "cli/cluster_call.h"

#include <utility>

namespace shoal {

ClusterCall::ClusterCall(const Options& options, Message request, Done done)
    : loop_(options.loop), done_(std::move(done)) {
  const std::string address = options.address;
  stream_ = options.network->Open(
      address, options.method,
      {.on_message = [this](Message message) { Finish(std::move(message)); },
       .on_closed =
           [this, address](absl::Status status) {
             if (status.ok()) {
               status = absl::UnavailableError(address + ": the stream ended without an answer");
             }
             Finish(std::move(status));
           }});
  stream_->Send(std::move(request));
  timer_ = loop_->CallAfter(options.timeout, [this, address] {
    Finish(absl::DeadlineExceededError(address + ": the coordinator does not answer"));
  });
}

ClusterCall::~ClusterCall() { loop_->CancelTimer(timer_); }

void ClusterCall::Finish(absl::StatusOr<Message> result) {
  // Not from inside the stream's callback: `done` may destroy this, and the stream with it.
  if (!done_) return;
  loop_->CancelTimer(timer_);
  timer_ = loop_->CallAfter(Time(0), [done = std::exchange(done_, nullptr),
                                      result = std::move(result)] { done(result); });
}

}  // namespace shoal
