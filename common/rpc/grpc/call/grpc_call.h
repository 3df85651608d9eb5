#pragma once

#include <grpcpp/support/byte_buffer.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/rpc/event_loop.h"
#include "common/rpc/message.h"
#include "common/rpc/network.h"
#include "common/rpc/shared/shared_payloads.h"

namespace shoal {

// An operation on a completion queue. The queue returns the tag at the operation's end.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Complete(bool ok) = 0;
};

class PendingReads;
class WriteBudget;

// One call on a completion queue, at either end. It has one read outstanding or pending and one
// write at a time. A bounded queue holds further messages. After the queue come the sources: the
// call makes their messages when it can write them and the network's budget allows it. The owner of
// the stream has a handle (Stream). The call lives until all its operations have ended, even
// without the handle, and then removes itself from the network. Loop thread only.
//
//             Finish, or the handle is dropped          last operation is back
//   open ───────────────────────────────────▶ ending ─────────────────────────▶ closed ───▶ removed
//     └──── Break: cancelled, queue dropped ────▲            (on_closed)
class GrpcCall {
 public:
  struct Limits {
    size_t max_message_bytes;
    size_t max_queued_bytes;
    size_t max_queued_messages;
    WriteBudget* budget;  // all pointers must outlive the call
    PendingReads* reads;
    size_t* sharing;     // number of clients' streams that share memory
    size_t max_sharing;  // max of `sharing`
    SharedMemory::Room room;
  };
  // Destroys the call.
  using Remove = std::function<void(GrpcCall*)>;

  GrpcCall(const Limits& limits, Remove remove);
  virtual ~GrpcCall();
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // Whether the call has not ended and is not going to end.
  bool open() const { return !end_ && !broken_ && !closed_; }
  // The messages that wait to be sent; a source counts as a message.
  size_t queued_messages() const { return queue_.size() + sources_.size(); }
  size_t queued_bytes() const { return queued_bytes_; }
  // Whether the call sends payloads through memory that it shares with the peer.
  bool shares() const { return shared_ != nullptr && shared_->places(); }
  // Drops all callbacks and sources.
  void Silence();
  // Ends the call when all queued messages are sent. No effect if the call is already ending.
  void EndAfterQueue(absl::Status status);
  // Cancels the call; it closes with `error`.
  void Break(const absl::Status& error);
  // Cancels the call because the peer has not read a message for this long, while other streams
  // wait for the memory.
  void BreakUnread(Time held);
  // Writes the next message. The budget calls this when it has room again.
  void Continue() { WriteNext(); }
  // Begins the pending read.
  void ResumeReading();

 protected:
  // A kind of operation of this call. At most one is outstanding at a time.
  class Operation : public CompletionTag {
   public:
    Operation(GrpcCall* call, std::function<void(bool ok)> done);
    // Marks the operation as outstanding and returns its tag. Call it right before the operation.
    void* Start();
    bool outstanding() const { return outstanding_; }
    void Complete(bool ok) override;

   private:
    GrpcCall* const call_;
    const std::function<void(bool)> done_;
    bool outstanding_ = false;
  };

  virtual void StartRead(grpc::ByteBuffer* buffer, void* tag) = 0;
  virtual void StartWrite(const grpc::ByteBuffer& buffer, void* tag) = 0;
  virtual void Cancel() = 0;
  // Sends the end to the peer. Called when the queue is empty and the call is to end.
  virtual void StartEnd(const absl::Status& status) = 0;
  // Called when the peer sends no more, or the call is broken.
  virtual void OnReadsEnded() = 0;
  // Ends the call from this end, like Stream::Finish().
  virtual void Finish(absl::Status status) = 0;
  // Called when the owner drops the handle of a call that is not ending.
  virtual void OnDropped() = 0;
  // Raises the max size of the peer's messages, like Stream::TrustClient().
  virtual void TrustClient() {}
  // Returns the certificate of the client, like Stream::client().
  virtual const Certificate* client() const { return nullptr; }
  // Checks a claim of the client, like Stream::CheckClaim().
  virtual absl::Status CheckClaim(int /*index*/) { return absl::OkStatus(); }
  // Ends a call that cannot continue. Sends the peer the reason if possible.
  virtual void Fail(absl::Status error) = 0;

  // Makes the handle for the owner of the stream. Call it at most once.
  std::unique_ptr<Stream> MakeHandle(std::string peer);
  void set_callbacks(StreamCallbacks callbacks);
  bool has_handle() const { return handle_ != nullptr; }

  // The memory that the ends share for payloads; null: all payloads travel in their messages.
  void set_shared(std::unique_ptr<SharedPayloads> shared) { shared_ = std::move(shared); }
  SharedPayloads* shared() const { return shared_.get(); }
  const Limits& limits() const { return limits_; }
  // Called when the peer's first message arrives, before its payload is looked up.
  virtual void OnFirstMessage() {}

  // Begins to read and to write queued messages. Call it once the call can carry messages.
  void StartMessages();
  // Calls on_half_closed: the client sends no more, and the owner decides when to end. Returns
  // false if there is no such callback.
  bool NotifyHalfClosed();
  // Calls on_outdated.
  void NotifyOutdated();
  void DropMessages() { drops_messages_ = true; }
  void DropSources();
  // Enters the last state and calls on_closed. Call it only in the done function of an operation.
  void Close(absl::Status status);

  bool closed() const { return closed_; }
  bool end_started() const { return end_started_; }
  const std::optional<absl::Status>& end() const { return end_; }
  const std::optional<absl::Status>& broken() const { return broken_; }

 private:
  class Handle;

  void Send(Message message);
  void SendFrom(MessageSource source);
  bool CheckQueue(size_t more_bytes);
  void HandleDropped();
  // Starts the next write, or the end. No effect during a write.
  void WriteNext();
  // Returns the next message of the sources. Nothing if there is none, or the budget is spent.
  std::optional<grpc::ByteBuffer> MakeNext();
  // Drops all queued messages and sources, and revokes lent payloads.
  void DropQueue();
  void OnRead(bool ok);
  void OnWritten(bool ok);
  // Calls one of callbacks_. Frees them afterwards if the handle was dropped meanwhile.
  void Call(const std::function<void()>& callback);
  void FreeCallbacks();

  const Limits limits_;
  Remove remove_;
  Handle* handle_ = nullptr;
  StreamCallbacks callbacks_;
  bool in_callback_ = false;

  std::unique_ptr<SharedPayloads> shared_;
  bool heard_ = false;  // a message has arrived

  std::deque<Message> queue_;
  std::deque<MessageSource> sources_;
  size_t queued_bytes_ = 0;
  grpc::ByteBuffer read_buffer_;
  Operation read_;
  Operation write_;
  int outstanding_ = 0;

  bool started_ = false;
  bool drops_messages_ = false;  // drops the peer's messages
  bool end_started_ = false;     // StartEnd() was called
  bool closed_ = false;
  std::optional<absl::Status> end_;     // the status with which this end ends the call
  std::optional<absl::Status> broken_;  // why this end cancelled the call
};

}  // namespace shoal
