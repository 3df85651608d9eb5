#include "tests/fakes/in_process/in_process_network.h"

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/mutex.h"
#include "tests/fakes/in_process/in_process_end.h"
#include "tests/fakes/in_process/in_process_loop.h"
#include "tests/fakes/in_process/in_process_mailbox.h"

namespace shoal {
namespace {

// A node that listens, as others see it.
struct Listener {
  std::shared_ptr<InProcessMailbox> mailbox;
  // Takes a stream; to be called on the loop of the node.
  std::function<void(std::shared_ptr<InProcessEnd> end, const std::string& method)> accept;
  InProcessEnd::Remove remove;
};

}  // namespace

// Who listens at which address. Thread-safe.
class InProcessDirectory {
 public:
  int NextNumber() {
    MutexLock lock(&mutex_);
    return ++last_number_;
  }
  // False when the address is taken.
  bool Add(const std::string& address, Listener listener) {
    MutexLock lock(&mutex_);
    return listeners_.emplace(address, std::move(listener)).second;
  }
  void Remove(const std::string& address) {
    MutexLock lock(&mutex_);
    listeners_.erase(address);
  }
  std::optional<Listener> Find(const std::string& address) {
    MutexLock lock(&mutex_);
    const auto it = listeners_.find(address);
    if (it == listeners_.end()) return std::nullopt;
    return it->second;
  }

 private:
  Mutex mutex_;
  std::map<std::string, Listener> listeners_ ABSL_GUARDED_BY(mutex_);
  int last_number_ ABSL_GUARDED_BY(mutex_) = 0;
};

namespace {

class NodeImpl : public InProcessHub::Node {
 public:
  NodeImpl(const InProcessHub::Options& options, std::shared_ptr<InProcessDirectory> directory)
      : options_(options),
        directory_(std::move(directory)),
        name_(absl::StrCat("in-process client ", directory_->NextNumber())) {}
  ~NodeImpl() override { End(); }

  EventLoop* loop() override { return &loop_; }
  void Run() override;

  std::unique_ptr<Stream> Open(const ServerAddress& to, const std::string& method,
                               StreamCallbacks callbacks) override;
  absl::StatusOr<std::string> Listen(const std::string& address, Acceptor acceptor) override;

 private:
  void Own(std::shared_ptr<InProcessEnd> end) { ends_.emplace(end.get(), std::move(end)); }
  void End();

  const InProcessHub::Options options_;
  const std::shared_ptr<InProcessDirectory> directory_;
  const std::string name_;
  InProcessLoop loop_;
  const InProcessEnd::Remove remove_ = [this](InProcessEnd* end) { ends_.erase(end); };
  std::string address_;  // Where this node listens; empty when it does not.
  Acceptor acceptor_;
  std::map<InProcessEnd*, std::shared_ptr<InProcessEnd>> ends_;
};

void NodeImpl::Run() {
  loop_.Run();
  End();
}

std::unique_ptr<Stream> NodeImpl::Open(const ServerAddress& to, const std::string& method,
                                       StreamCallbacks callbacks) {
  const std::string& address = to.address;
  const auto client = std::make_shared<InProcessEnd>(InProcessEnd::Side::kClient, options_,
                                                     loop_.mailbox(), address, remove_);
  client->set_callbacks(std::move(callbacks));
  Own(client);
  std::unique_ptr<Stream> handle = client->MakeHandle();
  const absl::Status unreachable =
      absl::UnavailableError(absl::StrCat(address, ": nobody listens there"));
  const std::optional<Listener> listener = directory_->Find(address);
  if (!listener) {
    client->FailLater(unreachable);
    return handle;
  }
  auto server = std::make_shared<InProcessEnd>(InProcessEnd::Side::kServer, options_,
                                               listener->mailbox, name_, listener->remove);
  InProcessEnd::Connect(client, server);
  listener->mailbox->Post([accept = listener->accept, server, method] { accept(server, method); });
  return handle;
}

absl::StatusOr<std::string> NodeImpl::Listen(const std::string& address, Acceptor acceptor) {
  const std::string bound = absl::EndsWith(address, ":0")
                                ? absl::StrCat("in-process:", directory_->NextNumber())
                                : address;
  acceptor_ = std::move(acceptor);
  const Listener listener{
      .mailbox = loop_.mailbox(),
      .accept =
          [this](std::shared_ptr<InProcessEnd> end, const std::string& method) {
            Own(end);
            end->Accept(acceptor_, method);
          },
      .remove = remove_,
  };
  if (!directory_->Add(bound, listener)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen at ", bound, ": it is in use by another node; choose another name"));
  }
  address_ = bound;
  return bound;
}

void NodeImpl::End() {
  if (!address_.empty()) directory_->Remove(address_);
  address_.clear();
  // This also drops streams that were opened to this node and not accepted yet, which breaks them.
  loop_.Close();
  for (const auto& [end, owner] : std::exchange(ends_, {})) owner->Detach();
  loop_.DropTimers();
}

}  // namespace

InProcessHub::InProcessHub(const Options& options)
    : options_(options), directory_(std::make_shared<InProcessDirectory>()) {}

std::unique_ptr<InProcessHub::Node> InProcessHub::CreateNode() {
  return std::make_unique<NodeImpl>(options_, directory_);
}

}  // namespace shoal
