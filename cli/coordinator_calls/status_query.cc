#include "cli/coordinator_calls/status_query.h"

#include <utility>

#include "common/base/version.h"

namespace shoal {

namespace {

Message Request() {
  proto::StatusRequest request;
  request.set_version(kVersion);
  return MakeMessage(request);
}

}  // namespace

StatusQuery::StatusQuery(EventLoop* loop, Network* network, const std::string& address,
                         Time timeout, Done done)
    : call_({.loop = loop,
             .network = network,
             .address = address,
             .method = kStatusMethod,
             .timeout = timeout},
            Request(), [address, done = std::move(done)](const absl::StatusOr<Message>& answer) {
              proto::StatusReply reply;
              if (!answer.ok()) return done(answer.status());
              if (!ParseReply(*answer, &reply)) {
                return done(
                    absl::DataLossError(address + ": the answer is not a coordinator's status"));
              }
              done(std::move(reply));
            }) {}

StatusPoller::StatusPoller(EventLoop* loop, Network* network, std::string address, Time interval,
                           StatusQuery::Done on_result)
    : loop_(loop),
      network_(network),
      address_(std::move(address)),
      interval_(interval),
      on_result_(std::move(on_result)) {
  Ask();
}

void StatusPoller::Ask() {
  query_ = std::make_unique<StatusQuery>(loop_, network_, address_, kTimeout,
                                         [this](absl::StatusOr<proto::StatusReply> result) {
                                           timer_.Set(interval_, [this] { Ask(); });
                                           on_result_(std::move(result));
                                         });
}

}  // namespace shoal
