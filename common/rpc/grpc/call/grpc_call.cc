#include "common/rpc/grpc/call/grpc_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/rpc/grpc/call/grpc_byte_buffer.h"
#include "common/rpc/grpc/call/pending_reads.h"
#include "common/rpc/grpc/call/write_budget.h"
#include "common/rpc/message_wire.h"

namespace shoal {
namespace {

// After a larger message the call reads the next one at once. Otherwise HTTP/2's window of 64 KiB
// may block the sender.
constexpr size_t kMaxBytesBeforePause = size_t{16} << 10;

}  // namespace

// The owner's handle. It may outlive the call, if the owner keeps it after on_closed.
class GrpcCall::Handle : public Stream {
 public:
  Handle(GrpcCall* call, std::string peer) : call_(call), peer_(std::move(peer)) {}
  ~Handle() override {
    if (call_ != nullptr) call_->HandleDropped();
  }
  void Send(Message message) override {
    if (call_ != nullptr) call_->Send(std::move(message));
  }
  void SendFrom(MessageSource source) override {
    if (call_ != nullptr) call_->SendFrom(std::move(source));
  }
  void Finish(absl::Status status) override {
    if (call_ == nullptr || call_->closed_) return;
    call_->DropSources();
    call_->Finish(std::move(status));
    call_->WriteNext();  // sends the end if only sources delayed it
  }
  void TrustClient() override {
    if (call_ != nullptr) call_->TrustClient();
  }
  std::string peer() const override { return peer_; }
  const Certificate* client() const override {
    return call_ == nullptr ? nullptr : call_->client();
  }
  absl::Status CheckClaim(int index) const override {
    return call_ == nullptr ? absl::CancelledError("the stream has ended")
                            : call_->CheckClaim(index);
  }

 private:
  friend class GrpcCall;
  GrpcCall* call_;
  const std::string peer_;
};

GrpcCall::Operation::Operation(GrpcCall* call, std::function<void(bool ok)> done)
    : call_(call), done_(std::move(done)) {}

void* GrpcCall::Operation::Start() {
  SHOAL_CHECK(!outstanding_);
  outstanding_ = true;
  ++call_->outstanding_;
  return static_cast<CompletionTag*>(this);
}

void GrpcCall::Operation::Complete(bool ok) {
  GrpcCall* const call = call_;
  outstanding_ = false;
  --call->outstanding_;
  done_(ok);
  if (!call->closed_ || call->outstanding_ > 0) return;
  // `remove` destroys the call and this operation. The function is moved out first to stay alive.
  const Remove remove = std::move(call->remove_);
  remove(call);
}

GrpcCall::GrpcCall(const Limits& limits, Remove remove)
    : limits_(limits),
      remove_(std::move(remove)),
      read_(this, [this](bool ok) { OnRead(ok); }),
      write_(this, [this](bool ok) { OnWritten(ok); }) {}

GrpcCall::~GrpcCall() {
  limits_.budget->Forget(this);
  limits_.reads->Forget(this);
  if (handle_ != nullptr) handle_->call_ = nullptr;
}

std::unique_ptr<Stream> GrpcCall::MakeHandle(std::string peer) {
  auto handle = std::make_unique<Handle>(this, std::move(peer));
  handle_ = handle.get();
  return handle;
}

void GrpcCall::set_callbacks(StreamCallbacks callbacks) { callbacks_ = std::move(callbacks); }

void GrpcCall::StartMessages() {
  started_ = true;
  StartRead(&read_buffer_, read_.Start());
  WriteNext();
}

void GrpcCall::Send(Message message) {
  if (end_ || broken_ || closed_) return;
  const size_t bytes = EncodedSize(message);
  if (bytes > limits_.max_message_bytes) {
    return Fail(absl::ResourceExhaustedError(
        absl::StrCat("a message of ", bytes, " bytes; the max is ", limits_.max_message_bytes)));
  }
  if (!CheckQueue(bytes)) return;
  queued_bytes_ += bytes;
  queue_.push_back(std::move(message));
  WriteNext();
}

void GrpcCall::SendFrom(MessageSource source) {
  if (end_ || broken_ || closed_ || !CheckQueue(0)) return;
  sources_.push_back(std::move(source));
  WriteNext();
}

bool GrpcCall::CheckQueue(size_t more_bytes) {
  if (queued_messages() < limits_.max_queued_messages &&
      queued_bytes_ + more_bytes <= limits_.max_queued_bytes) {
    return true;
  }
  Break(absl::ResourceExhaustedError(
      absl::StrCat(handle_->peer(), " does not read: ", queued_messages(), " messages wait, with ",
                   queued_bytes_, " bytes")));
  return false;
}

void GrpcCall::EndAfterQueue(absl::Status status) {
  if (end_ || closed_) return;
  end_ = std::move(status);
  WriteNext();
}

void GrpcCall::WriteNext() {
  if (!started_ || write_.outstanding() || broken_) return;
  if (!queue_.empty()) {
    Message message = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= EncodedSize(message);
    if (shared_ != nullptr) shared_->Place(&message);
    StartWrite(ToByteBuffer(message), write_.Start());
  } else if (const std::optional<grpc::ByteBuffer> made = MakeNext()) {
    StartWrite(*made, write_.Start());
  } else if (sources_.empty() && end_ && !end_started_ && !broken_) {
    end_started_ = true;
    StartEnd(*end_);
  }
}

std::optional<grpc::ByteBuffer> GrpcCall::MakeNext() {
  while (!sources_.empty() && limits_.budget->Admit(this)) {
    std::optional<Message> message = sources_.front()();
    if (!message.has_value()) {
      sources_.pop_front();
      continue;
    }
    const size_t bytes = EncodedSize(*message);
    if (bytes > limits_.max_message_bytes) {
      DropSources();
      Fail(absl::ResourceExhaustedError(
          absl::StrCat("a message of ", bytes, " bytes; the max is ", limits_.max_message_bytes)));
      return std::nullopt;
    }
    if (shared_ != nullptr) shared_->Place(&*message);
    return ToByteBuffer(*message, limits_.budget->Charge(this, *message));
  }
  return std::nullopt;
}

void GrpcCall::DropQueue() {
  queue_.clear();
  queued_bytes_ = 0;
  DropSources();
  if (shared_ != nullptr) shared_->Revoke();
}

void GrpcCall::DropSources() {
  // Objects that the sources own may call this object again when they are destroyed.
  const std::deque<MessageSource> dropped = std::exchange(sources_, {});
}

void GrpcCall::OnWritten(bool ok) {
  if (ok) return WriteNext();
  // The call is broken; its status brings the reason.
  DropQueue();
}

void GrpcCall::OnRead(bool ok) {
  if (!ok || closed_) return OnReadsEnded();
  grpc::ByteBuffer received;
  received.Swap(&read_buffer_);
  // After a large message, reads before the callback. The peer can then send while the callback
  // runs.
  if (received.Length() > kMaxBytesBeforePause) {
    ResumeReading();
  } else {
    limits_.reads->Add(this);
  }
  if (drops_messages_) return;
  if (!std::exchange(heard_, true)) OnFirstMessage();
  absl::StatusOr<Message> message = FromByteBuffer(received);
  received.Clear();
  if (message.ok() && shared_ != nullptr) {
    const absl::Status found = shared_->Find(&*message);
    if (!found.ok()) message = found;
  }
  if (!message.ok()) {
    drops_messages_ = true;
    return Fail(message.status());
  }
  if (callbacks_.on_message) Call([&] { callbacks_.on_message(*std::move(message)); });
}

void GrpcCall::ResumeReading() {
  if (!closed_) StartRead(&read_buffer_, read_.Start());
}

void GrpcCall::Break(const absl::Status& error) {
  if (broken_ || closed_) return;
  broken_ = error;
  drops_messages_ = true;
  DropQueue();
  Cancel();
}

void GrpcCall::BreakUnread(Time held) {
  Break(absl::ResourceExhaustedError(absl::StrCat(
      handle_ == nullptr ? "the peer" : handle_->peer(), " does not read: a message of ",
      WholeSeconds(held), " s ago still waits here and blocks others")));
}

void GrpcCall::Close(absl::Status status) {
  if (closed_) return;
  closed_ = true;
  drops_messages_ = true;
  DropQueue();
  if (callbacks_.on_closed) Call([&] { callbacks_.on_closed(std::move(status)); });
  FreeCallbacks();
}

bool GrpcCall::NotifyHalfClosed() {
  if (drops_messages_ || closed_ || !callbacks_.on_half_closed) return false;
  Call([&] { callbacks_.on_half_closed(); });
  return true;
}

void GrpcCall::NotifyOutdated() {
  if (open() && callbacks_.on_outdated) Call([&] { callbacks_.on_outdated(); });
}

void GrpcCall::Silence() {
  drops_messages_ = true;
  DropSources();
  FreeCallbacks();
}

void GrpcCall::HandleDropped() {
  handle_ = nullptr;
  drops_messages_ = true;
  DropSources();
  if (!end_ && !closed_) OnDropped();
  WriteNext();
  if (!in_callback_) FreeCallbacks();
}

void GrpcCall::Call(const std::function<void()>& callback) {
  if (handle_ == nullptr) return;
  in_callback_ = true;
  callback();
  in_callback_ = false;
  if (handle_ == nullptr) FreeCallbacks();
}

void GrpcCall::FreeCallbacks() {
  // Objects that the callbacks own may call this object again when they are destroyed.
  const StreamCallbacks freed = std::exchange(callbacks_, {});
}

}  // namespace shoal
