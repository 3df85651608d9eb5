#include "cli/status_query.h"

#include <utility>

#include "common/daemon/version.h"

namespace shoal {

StatusQuery::StatusQuery(EventLoop* loop, Network* network, const std::string& address,
                         Time timeout, Done done)
    : loop_(loop), address_(address), done_(std::move(done)) {
  stream_ = network->Open(
      address, kStatusMethod,
      {.on_message =
           [this](Message message) {
             proto::StatusReply reply;
             if (!ParseMessage(message, &reply)) {
               return Finish(
                   absl::DataLossError(address_ + ": the answer is not a coordinator's status"));
             }
             Finish(std::move(reply));
           },
       .on_closed =
           [this](absl::Status status) {
             if (status.ok()) {
               status = absl::UnavailableError(address_ + ": the stream ended without an answer");
             }
             Finish(std::move(status));
           }});
  proto::StatusRequest request;
  request.set_version(kVersion);
  stream_->Send(MakeMessage(request));
  timer_ = loop_->CallAfter(timeout, [this] {
    Finish(absl::DeadlineExceededError(address_ + ": the coordinator does not answer"));
  });
}

StatusQuery::~StatusQuery() { loop_->CancelTimer(timer_); }

void StatusQuery::Finish(absl::StatusOr<proto::StatusReply> result) {
  // Not from inside the stream's callback: `done` may destroy this, and the stream with it.
  if (!done_) return;
  loop_->CancelTimer(timer_);
  timer_ = loop_->CallAfter(Time(0), [done = std::exchange(done_, nullptr),
                                      result = std::move(result)] { done(result); });
}

StatusPoller::StatusPoller(EventLoop* loop, Network* network, std::string address, Time interval,
                           StatusQuery::Done on_result)
    : loop_(loop),
      network_(network),
      address_(std::move(address)),
      interval_(interval),
      on_result_(std::move(on_result)) {
  Ask();
}

StatusPoller::~StatusPoller() { loop_->CancelTimer(timer_); }

void StatusPoller::Ask() {
  query_ = std::make_unique<StatusQuery>(loop_, network_, address_, kTimeout,
                                         [this](absl::StatusOr<proto::StatusReply> result) {
                                           timer_ = loop_->CallAfter(interval_, [this] { Ask(); });
                                           on_result_(std::move(result));
                                         });
}

}  // namespace shoal
