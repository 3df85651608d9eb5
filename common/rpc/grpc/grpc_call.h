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

// What a completion queue brings back: the end of one operation.
class CompletionTag {
 public:
  virtual ~CompletionTag() = default;
  virtual void Complete(bool ok) = 0;
};

class PendingReads;
class WriteBudget;

// One call on a completion queue, seen from either end: one read outstanding or pending, one write
// at a time, a bounded queue behind it, and behind that the sources, whose messages are made when
// they can be written and the budget of the network allows it. The owner of the stream has a handle
// (Stream); the call itself lives until all its operations have come back, with or without the
// handle, and then removes itself from the network. Everything on the loop's thread.
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
    WriteBudget* budget;  // these outlive the call
    PendingReads* reads;
    // The streams of clients that share memory, and how many may.
    size_t* sharing;
    size_t max_sharing;
    SharedMemory::Room room;
  };
  // Destroys the call.
  using Remove = std::function<void(GrpcCall*)>;

  GrpcCall(const Limits& limits, Remove remove);
  virtual ~GrpcCall();
  GrpcCall(const GrpcCall&) = delete;
  GrpcCall& operator=(const GrpcCall&) = delete;

  // Neither ended, nor told to end.
  bool open() const { return !end_ && !broken_ && !closed_; }
  // What waits to be sent; a source counts as a message.
  size_t queued_messages() const { return queue_.size() + sources_.size(); }
  size_t queued_bytes() const { return queued_bytes_; }
  // Payloads may lie in memory that the peer has, too.
  bool shares() const { return shared_ != nullptr && shared_->places(); }
  // No more callbacks.
  void Silence();
  // Ends when all that is queued is sent. No effect when an end is wanted already.
  void EndAfterQueue(absl::Status status);
  // Cancels the call; it closes with `error`.
  void Break(const absl::Status& error);
  // The peer has held what was written to it for this long, while others wait for the memory.
  void BreakUnread(Time held);
  // The budget has room again.
  void Continue() { WriteNext(); }
  // The pending read begins.
  void ReadOn();

 protected:
  // An operation of this call that can be outstanding once at a time.
  class Operation : public CompletionTag {
   public:
    Operation(GrpcCall* call, std::function<void(bool ok)> done);
    // The tag of an operation that is about to be started.
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
  // All that was queued is sent and the end is wanted: says so to the peer.
  virtual void StartEnd(const absl::Status& status) = 0;
  // The peer will send no more, or the call is broken.
  virtual void OnReadsEnded() = 0;
  // This end wants to end the call (as Stream::Finish).
  virtual void Finish(absl::Status status) = 0;
  // The owner dropped the handle of a call that was not to end yet.
  virtual void OnDropped() = 0;
  // Ends a call that cannot go on, telling the peer why where that is possible.
  virtual void Fail(absl::Status error) = 0;

  // A handle for the owner of the stream; at most one.
  std::unique_ptr<Stream> MakeHandle(std::string peer);
  void set_callbacks(StreamCallbacks callbacks);
  bool has_handle() const { return handle_ != nullptr; }

  // Where payloads may lie; null: in their messages alone.
  void set_shared(std::unique_ptr<SharedPayloads> shared) { shared_ = std::move(shared); }
  SharedPayloads* shared() const { return shared_.get(); }
  const Limits& limits() const { return limits_; }
  // The peer's first message is there; its payload is not yet read.
  virtual void OnFirstMessage() {}

  // The call can carry messages: reads, and writes what is queued.
  void StartMessages();
  // The owner, told that the client sends no more, decides about the end.
  bool TellHalfClosed();
  void DropMessages() { deaf_ = true; }
  // Last state; on_closed is called. To be called in the done function of an operation.
  void Close(absl::Status status);

  bool closed() const { return closed_; }
  bool end_said() const { return end_said_; }
  const std::optional<absl::Status>& end() const { return end_; }
  const std::optional<absl::Status>& broken() const { return broken_; }

 private:
  class Handle;

  void Send(Message message);
  void SendFrom(MessageSource source);
  bool CheckQueue(size_t more_bytes);
  void HandleDropped();
  // Starts the next write, or the end, when nothing is being written.
  void WriteNext();
  // The next message of the sources; none when there is none, or it may not be made yet.
  std::optional<grpc::ByteBuffer> MakeNext();
  // Nothing more is sent, nor lent.
  void DropQueue();
  void DropSources();
  void OnRead(bool ok);
  void OnWritten(bool ok);
  // Calls one of callbacks_; they are freed afterwards when the handle was dropped meanwhile.
  void Call(const std::function<void()>& callback);
  void FreeCallbacks();

  const Limits limits_;
  Remove remove_;
  Handle* handle_ = nullptr;
  StreamCallbacks callbacks_;
  bool in_callback_ = false;

  std::unique_ptr<SharedPayloads> shared_;
  bool heard_ = false;  // A message has come.

  std::deque<Message> queue_;
  std::deque<MessageSource> sources_;
  size_t queued_bytes_ = 0;
  grpc::ByteBuffer read_buffer_;
  Operation read_;
  Operation write_;
  int outstanding_ = 0;

  bool started_ = false;
  bool deaf_ = false;      // Messages of the peer are dropped.
  bool end_said_ = false;  // StartEnd was called.
  bool closed_ = false;
  std::optional<absl::Status> end_;     // What this end wanted to end with.
  std::optional<absl::Status> broken_;  // Why this end cancelled.
};

}  // namespace shoal
