#include "worker/compute/runner/mirrored/replica.h"

#include <pthread.h>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/memory/memory_limit.h"

namespace shoal {

absl::StatusOr<std::unique_ptr<Replica>> Replica::Start(std::string name, Create create) {
  std::unique_ptr<Replica> replica(new Replica(std::move(name)));
  replica->Submit([&runner = replica->runner_, &create] {
    absl::StatusOr<std::unique_ptr<GraphRunner>> created = create();
    if (!created.ok()) return created.status();
    runner = *std::move(created);
    return absl::OkStatus();
  });
  SHOAL_RETURN_IF_ERROR(replica->Await());
  return replica;
}

Replica::~Replica() {
  (void)Await();
  Submit([this] {
    runner_.reset();
    return absl::OkStatus();
  });
  (void)Await();
  {
    MutexLock lock(&mutex_);
    ending_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void Replica::Begin(std::function<absl::Status(GraphRunner& runner)> task) {
  Submit([this, task = std::move(task)] { return task(*runner_); });
}

void Replica::Submit(std::function<absl::Status()> task) {
  {
    MutexLock lock(&mutex_);
    task_ = std::move(task);
  }
  changed_.NotifyAll();
}

absl::Status Replica::Await() {
  MutexLock lock(&mutex_);
  while (task_ != nullptr) changed_.Wait(&mutex_);
  if (status_.ok()) return status_;
  return absl::Status(status_.code(), absl::StrCat(name_, ": ", std::string(status_.message())));
}

void Replica::Run() {
  pthread_setname_np(pthread_self(), "replica");
  for (;;) {
    std::function<absl::Status()> task;
    {
      MutexLock lock(&mutex_);
      while (task_ == nullptr && !ending_) changed_.Wait(&mutex_);
      if (ending_) return;
      task = task_;
    }
    const absl::Status status = CatchOutOfMemory("a part of a batch", task);
    {
      MutexLock lock(&mutex_);
      task_ = nullptr;
      status_ = status;
    }
    changed_.NotifyAll();
  }
}

}  // namespace shoal
