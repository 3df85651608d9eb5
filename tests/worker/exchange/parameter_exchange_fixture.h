#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"
#include "tests/worker/exchange/exchange_peer.h"
#include "worker/exchange/parameter_exchange.h"

namespace shoal {

inline constexpr uint64_t kTimeline = 70, kStep = 12;

class ParameterExchangeTest : public testing::Test {
 protected:
  ParameterExchangeTest()
      : parameters_(model_.layout.size, -1),
        gradients_(model_.layout.size),
        cut_(model_.layout.size, -1) {
    std::iota(gradients_.begin(), gradients_.end(), 1000.0f);
    EXPECT_GE(model_.chunks(0).size(), 2u);
    EXPECT_GE(model_.chunks(1).size(), 2u);
    Make({});
  }

  // Uses from `options` only the fields that a job sets for an exchange.
  void Make(ParameterExchange::Options options) {
    options.loop = &loop_;
    options.network = &network_;
    options.shard_map = &model_.shard_map;
    options.layout = &model_.layout;
    options.worker = 3;
    options.job_fingerprint = 0xabcdef01;
    options.addresses = {"ps-0:1", "ps-1:1"};
    options.parameters = parameters_;
    options.gradients = gradients_;
    options.gradients_owner = gradients_owner_;
    options.on_arrived = [this](int ps, int chunk) { arrived_.push_back({ps, chunk}); };
    options.on_timeline_lost = [this](const std::string& why) {
      events_.push_back(absl::StrCat("lost: ", why));
    };
    options.on_failed = [this](const absl::Status& status) {
      events_.push_back(absl::StrCat("failed: ", std::string(status.message())));
    };
    exchange_ = std::make_unique<ParameterExchange>(std::move(options));
  }

  FarEnd& ps(int index) { return network_.Newest(absl::StrCat("ps-", index, ":1")); }
  // Sends the hello of both ps and takes their first messages.
  void Connect() {
    for (int i = 0; i < 2; ++i) {
      ExchangePeer::SendHello(ps(i), kTimeline);
      ps(i).Take<proto::ExchangeRequest>();
    }
    loop_.RunUntilIdle();
    exchange_->SetTimeline(kTimeline);
  }
  void Break(int index) {
    ps(index).Close(absl::UnavailableError("connection reset"));
    loop_.Advance(std::chrono::seconds(2));
    EXPECT_TRUE(ps(index).open()) << "it tries again";
  }
  int ChunkCount(int index) const { return static_cast<int>(model_.chunks(index).size()); }
  std::vector<std::pair<int, int>> PushedChunks() const {
    std::vector<std::pair<int, int>> chunks;
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < ChunkCount(i); ++k) {
        if (model_.chunks(i)[k].pushed()) chunks.emplace_back(i, k);
      }
    }
    return chunks;
  }
  void SendValues(int index, int chunk, float value, uint64_t version = 1) {
    ExchangePeer::SendValues(ps(index), kTimeline, chunk, version, 0,
                             model_.Filled(index, chunk, value));
    loop_.RunUntilIdle();
  }
  void Acknowledge(int index, int chunk, float value, uint64_t version = 2) {
    ExchangePeer::SendApplied(ps(index), kTimeline, kStep, chunk, version,
                              model_.Filled(index, chunk, value));
    loop_.RunUntilIdle();
  }
  // Delivers every chunk at this version and discards the requests.
  void PullAll(float value, uint64_t version) {
    exchange_->PullAll([this] { events_.push_back("pulled"); });
    for (int i = 0; i < 2; ++i) {
      ps(i).Take<proto::ExchangeRequest>();
      for (int k = 0; k < ChunkCount(i); ++k) SendValues(i, k, value, version);
    }
    EXPECT_THAT(TakeEvents(), testing::ElementsAre("pulled"));
    arrived_.clear();
  }
  void BeginStep() {
    exchange_->BeginStep(kStep, [this] { events_.push_back("applied"); });
  }
  // Expects that all values of a chunk in `parameters_` are `value`.
  void ExpectChunk(int index, int chunk, float value) {
    EXPECT_EQ(model_.Gather(index, chunk, parameters_), model_.Filled(index, chunk, value))
        << "ps " << index << " chunk " << chunk;
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  const SmallModel model_;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  const std::shared_ptr<const void> gradients_owner_ = std::make_shared<int>();
  std::vector<float> cut_;
  std::vector<std::string> events_;
  std::vector<std::pair<int, int>> arrived_;
  std::unique_ptr<ParameterExchange> exchange_;
};

}  // namespace shoal
