#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/network.h"
#include "tests/fakes/in_process/in_process_mailbox.h"
#include "tests/fakes/in_process/in_process_network.h"

namespace shoal {

// One end of a stream inside the process. It lives on the loop of its node, which owns it, and
// talks to the other end through that one's mailbox. An end that is destroyed while open tells the
// other one.
class InProcessEnd : public std::enable_shared_from_this<InProcessEnd> {
 public:
  enum class Side { kClient, kServer };
  // Lets the node forget the end.
  using Remove = std::function<void(InProcessEnd*)>;

  // `peer_name` is what Stream::peer says.
  InProcessEnd(Side side, InProcessHub::Options limits, std::shared_ptr<InProcessMailbox> mailbox,
               std::string peer_name, Remove remove);
  ~InProcessEnd();

  // Before either end is used.
  static void Connect(const std::shared_ptr<InProcessEnd>& a,
                      const std::shared_ptr<InProcessEnd>& b);

  // A handle for the owner of the stream; at most one.
  std::unique_ptr<Stream> MakeHandle();
  void set_callbacks(StreamCallbacks callbacks);
  // Server: lets the acceptor decide, with a handle.
  void Accept(const Network::Acceptor& acceptor, const std::string& method);
  // The other end is not there.
  void FailLater(absl::Status error);
  // The node has ended: no more callbacks.
  void Abandon();

 private:
  class Handle;

  void Send(Message message);
  void SendFrom(MessageSource source);
  // Has the sources make the next message, unless the one before has not been received yet.
  void MakeNext();
  // False, and the stream is broken, when more would be above a cap.
  bool CheckQueue(InProcessEnd* peer, size_t more_bytes);
  void Finish(absl::Status status);
  // The last message of the client has come.
  void OnHalfClose();
  // The end of a server that has nothing more to say.
  void End(absl::Status status);
  void HandleDropped();
  // Cancels; on_closed brings `error`.
  void Break(absl::Status error);
  // Runs `arrival` on the other end; finds it gone when its node has ended.
  void Tell(std::function<void(InProcessEnd*)> arrival);
  void CloseLater(absl::Status status);
  void Close(absl::Status status);
  void Deliver(Message message);
  void Call(const std::function<void()>& callback);
  void FreeCallbacks();
  absl::Status PeerGone() const;

  const Side side_;
  const InProcessHub::Options limits_;
  const std::shared_ptr<InProcessMailbox> mailbox_;
  const std::string peer_name_;
  const Remove remove_;
  std::weak_ptr<InProcessEnd> peer_;
  std::shared_ptr<InProcessMailbox> peer_mailbox_;
  // On the way to this end; counted up by the other one.
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<size_t> queued_messages_{0};

  // The rest belongs to the loop of the node.
  Handle* handle_ = nullptr;
  StreamCallbacks callbacks_;
  std::deque<MessageSource> sources_;
  bool made_is_unread_ = false;
  std::optional<absl::Status> end_after_sources_;
  bool in_callback_ = false;
  bool deciding_ = false;  // The acceptor is running.
  bool ended_ = false;     // This end has sent its last message.
  bool deaf_ = false;      // Messages that arrive are dropped.
  bool leaving_ = false;   // The other end has heard the last of this one.
  bool closed_ = false;
};

}  // namespace shoal
