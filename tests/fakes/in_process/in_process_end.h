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

// One end of a stream inside the process. It lives on the loop of its node, which owns it. It
// reaches the other end through that end's mailbox. If it is destroyed while open, it informs the
// other end.
class InProcessEnd : public std::enable_shared_from_this<InProcessEnd> {
 public:
  enum class Side { kClient, kServer };
  // Removes the end from its node.
  using Remove = std::function<void(InProcessEnd*)>;

  // `peer_name` is the result of Stream::peer.
  InProcessEnd(Side side, InProcessHub::Options limits, std::shared_ptr<InProcessMailbox> mailbox,
               std::string peer_name, Remove remove);
  ~InProcessEnd();

  // Call it before either end is used.
  static void Connect(const std::shared_ptr<InProcessEnd>& a,
                      const std::shared_ptr<InProcessEnd>& b);

  // Returns the handle for the stream's owner; at most one.
  std::unique_ptr<Stream> MakeHandle();
  void set_callbacks(StreamCallbacks callbacks);
  // For a server: passes a handle to the acceptor, which decides.
  void Accept(const Network::Acceptor& acceptor, const std::string& method);
  // Fails later with `error`, because the other end does not exist.
  void FailLater(absl::Status error);
  // Stops all callbacks, because the node has ended.
  void Detach();

 private:
  class Handle;

  void Send(Message message);
  void SendFrom(MessageSource source);
  // Lets a source make the next message, unless the last one has not been received yet.
  void MakeNext();
  // Returns false and breaks the stream if more bytes would exceed a limit.
  bool CheckQueue(InProcessEnd* peer, size_t more_bytes);
  void Finish(absl::Status status);
  // Handles the end of the client's messages.
  void OnHalfClose();
  // Ends the stream for a server without further messages.
  void End(absl::Status status);
  void HandleDropped();
  // Cancels the stream; on_closed receives `error`.
  void Break(absl::Status error);
  // Runs `arrival` on the other end. Treats that end as gone if its node has ended.
  void PostToPeer(std::function<void(InProcessEnd*)> arrival);
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
  // In flight to this end; the other end counts them up.
  std::atomic<size_t> queued_bytes_{0};
  std::atomic<size_t> queued_messages_{0};

  // Loop of the node only, from here on.
  Handle* handle_ = nullptr;
  StreamCallbacks callbacks_;
  std::deque<MessageSource> sources_;
  bool unread_ = false;  // The peer has not received the last message of a source.
  std::optional<absl::Status> end_after_sources_;
  bool in_callback_ = false;
  bool deciding_ = false;        // The acceptor is running.
  bool ended_ = false;           // This end has sent its last message.
  bool drops_messages_ = false;  // Messages that arrive are dropped.
  bool leaving_ = false;         // This end has sent its last event to the other end.
  bool closed_ = false;
};

}  // namespace shoal
