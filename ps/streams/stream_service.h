#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"
#include "common/rpc/network.h"
#include "ps/streams/session.h"

namespace shoal {

// Serves the streams of one method: greets each, and hands its messages to the subclass until one
// side ends it. Loop thread only.
class StreamService {
 public:
  explicit StreamService(EventLoop* loop) : loop_(loop) {}  // outlives this
  virtual ~StreamService() = default;
  StreamService(const StreamService&) = delete;
  StreamService& operator=(const StreamService&) = delete;

  // Takes a stream that a client has opened. Uses it from the next turn of the loop on.
  StreamCallbacks Accept(std::unique_ptr<Stream> stream);
  size_t stream_count() const { return sessions_.size(); }

 protected:
  // The open streams, oldest first.
  const std::map<uint64_t, SessionPtr>& sessions() const { return sessions_; }

 private:
  // Sends the ServerHello, before everything else on this stream.
  virtual void SendHello(const SessionPtr& session) = 0;
  // A message has come. Not called after Session::End.
  virtual void OnMessage(const SessionPtr& session, const Message& message) = 0;
  // A stream is closed, and not among sessions() any more.
  virtual void OnClosed() {}

  void Greet(const SessionPtr& session);
  void Receive(const SessionPtr& session, const Message& message);

  EventLoop* const loop_;
  uint64_t next_session_ = 0;
  std::map<uint64_t, SessionPtr> sessions_;
};

}  // namespace shoal
