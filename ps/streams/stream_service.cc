#include "ps/streams/stream_service.h"

#include <utility>

namespace shoal {

StreamCallbacks StreamService::Accept(std::unique_ptr<Stream> stream) {
  const auto session = std::make_shared<Session>();
  session->stream = std::move(stream);
  const uint64_t id = next_session_++;
  sessions_[id] = session;
  const std::weak_ptr<Session> weak = session;
  // The stream is usable only after this function has returned.
  loop_->Post([this, weak] {
    if (const SessionPtr opened = weak.lock()) Greet(opened);
  });
  return {.on_message =
              [this, weak](Message message) {
                if (const SessionPtr receiver = weak.lock()) Receive(receiver, message);
              },
          .on_closed =
              [this, id](absl::Status) {
                const auto closed = sessions_.extract(id);
                OnClosed();
              }};
}

void StreamService::Greet(const SessionPtr& session) {
  if (!std::exchange(session->greeted, true)) SendHello(session);
}

void StreamService::Receive(const SessionPtr& session, const Message& message) {
  if (session->ended) return;
  Greet(session);
  OnMessage(session, message);
}

}  // namespace shoal
