#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/version.h"
#include "coordinator/steps/membership.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {

// A Membership of workers 0 to 3, whose far ends the test holds: for what has to do with workers
// and nothing else of a run. What workers say beside hello goes to the fields.
class JoinedWorkers {
 public:
  explicit JoinedWorkers(FakeLoop* loop) : loop_(*loop) {
    membership_ = std::make_unique<Membership>(Membership::Options{
        .loop = loop,
        .listed = {0, 1, 2, 3},
        .on_ready = [](Worker& worker, const proto::WorkerReady&) { worker.ready = true; },
        .on_report = [](Worker&, const proto::WorkerReport&) {},
        .on_gone =
            [this](Worker& worker, const std::string& why) {
              if (on_gone != nullptr) on_gone(worker, why);
            }});
  }

  // It has said hello and is ready.
  Worker& Join(int index, const proto::WorkerHello& known = {}) {
    Connect(index);
    SendHello(index, known);
    proto::WorkerReport ready;
    ready.mutable_ready();
    far_[index]->Send(ready);
    loop_.RunUntilIdle();
    far_[index]->Take<proto::WorkerOrder>();
    return *Find(index);
  }
  void SendHello(int index, const proto::WorkerHello& known = {}) {
    proto::WorkerReport report;
    *report.mutable_hello() = known;
    report.mutable_hello()->set_index(index);
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_incarnation(index + 1);
    report.mutable_hello()->set_host("node");
    report.mutable_hello()->set_pid(100 + index);
    far_[index]->Send(report);
    loop_.RunUntilIdle();
  }
  // It opens a stream and says nothing.
  void Connect(int index) {
    auto far = std::make_shared<FarEnd>(&loop_, "10.0.0.7:4711", kWorkMethod);
    far->set_callbacks(membership_->Accept(far->MakeStream()));
    far_[index] = far;
    loop_.RunUntilIdle();
  }
  // Null: it is not connected.
  Worker* Find(int index) {
    for (const auto& [key, worker] : membership_->workers()) {
      if (worker->index == index) return worker.get();
    }
    return nullptr;
  }
  // Its stream breaks.
  void Break(int index) {
    far_[index]->Close(absl::UnavailableError("connection reset"));
    loop_.RunUntilIdle();
  }
  // What it was told since the last call.
  std::vector<proto::WorkerOrder> Orders(int index) {
    loop_.RunUntilIdle();
    return far_[index]->Take<proto::WorkerOrder>();
  }
  // Of these, the steps that were leased to it.
  std::vector<uint64_t> Leases(int index) {
    std::vector<uint64_t> steps;
    for (const proto::WorkerOrder& order : Orders(index)) {
      for (uint64_t i = 0; i < order.lease().count(); ++i)
        steps.push_back(order.lease().first() + i);
    }
    return steps;
  }
  Membership* membership() { return membership_.get(); }

  std::function<void(Worker&, const std::string& why)> on_gone;

 private:
  FakeLoop& loop_;
  std::map<int, std::shared_ptr<FarEnd>> far_;
  std::unique_ptr<Membership> membership_;
};

}  // namespace shoal
