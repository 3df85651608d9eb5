#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/term.h"
#include "common/job/job.h"
#include "common/sharding/shard_map.h"
#include "proto/parameter_server.pb.h"
#include "ps/parameter_server.h"
#include "tests/fakes/fake_loop.h"
#include "tests/ps/fake_stream.h"

namespace shoal {

// The term of the coordinator in most tests.
inline constexpr uint64_t kTerm = MakeTerm(1, 5);

// A job whose model has two Dense layers: 4 chunks on one ps, SGD with learning rate 1.
Job TestJob();
// The variables of its model.
std::vector<Variable> JobVariables(const Job& job);

// A ps on a fake loop, and clients of it.
class ParameterServerTest : public testing::Test {
 protected:
  static constexpr uint64_t kIncarnation = 77;
  static constexpr uint64_t kExamples = 3200;    // all steps of TestJob belong to one epoch
  static constexpr char kMarker[] = ".cut-5-1";  // of the fences

  struct Client {
    StreamCallbacks callbacks;
    std::shared_ptr<Received> received;

    template <typename Reply>
    Reply Take() {
      Reply reply;
      EXPECT_FALSE(received->messages.empty()) << "no answer";
      if (received->messages.empty()) return reply;
      EXPECT_TRUE(ParseMessage(received->messages.front(), &reply));
      payload = received->messages.front().payload;
      received->messages.pop_front();
      return reply;
    }
    bool quiet() const { return received->messages.empty(); }

    std::vector<Slice> payload;  // of the last message taken
  };

  ParameterServerTest() { Restart(); }

  void Restart();
  // Opens a stream and takes its ServerHello.
  Client Connect(const std::string& method, proto::ServerHello* hello = nullptr);
  Client ConnectControl() { return Connect(kControlMethod); }
  // Opens a worker's stream and sends its ExchangeHello.
  Client ConnectWorker(uint32_t shard_map_fingerprint = 0);

  // Sends a request without running the offloaded work.
  void SendOnly(Client& client, const proto::ControlRequest& request);
  // Sends a request, runs everything and returns the first answer.
  proto::ControlReply Ask(Client& client, const proto::ControlRequest& request);
  proto::ExchangeReply Ask(Client& client, const proto::ExchangeRequest& request,
                           std::vector<Slice> payload = {});

  static proto::ControlRequest Claim(uint64_t term, uint64_t training_examples = kExamples);
  static proto::ControlRequest Load(uint64_t term, const std::string& job,
                                    const std::string& checkpoint = "", uint32_t ps_count = 1);
  static proto::ControlRequest Fence(uint64_t term, uint64_t timeline, uint64_t cut_step,
                                     const std::string& directory = "", bool hold = false);
  static proto::ControlRequest Release(uint64_t term, uint64_t cut_step);
  static proto::ControlRequest Stop(uint64_t term);
  static proto::ExchangeRequest Pull(uint64_t timeline, uint32_t first, uint32_t count,
                                     uint64_t cut_step = 0);

  // Claims the ps on this stream, without running the offloaded work. Requires that all answers
  // were taken.
  void ClaimWith(Client& control, uint64_t term);
  // Opens a stream of the coordinator that has this term.
  Client ConnectCoordinator(uint64_t term);
  // Claims the ps and loads the job from its seed; the timeline is `term`.
  void LoadJob(Client& control, uint64_t term);
  // Pushes ones to a chunk.
  proto::ExchangeReply Push(Client& worker, uint64_t timeline, uint64_t step, uint32_t chunk,
                            bool want_values = false, uint64_t pulled_version = 0);
  // Pushes a skip of the step.
  proto::ExchangeReply PushSkip(Client& worker, uint64_t timeline, uint64_t step, uint32_t chunk,
                                bool want_values = false);
  // Pushes ones to all chunks. Requires that all are applied.
  void PushStep(Client& worker, uint64_t timeline, uint64_t step);
  // Returns the values of a chunk, either live or of a cut.
  std::vector<float> Values(Client& worker, uint64_t timeline, uint32_t chunk,
                            uint64_t cut_step = 0);

  const Job job_ = TestJob();
  const ShardMap shard_map_{
      JobVariables(job_),
      1,
      {.min_shard_bytes = job_.strategy.min_shard_bytes, .chunk_bytes = job_.strategy.chunk_bytes}};
  uint32_t job_fingerprint_ = job_.Fingerprint();  // of the workers
  int stops_ = 0;
  std::vector<uint64_t> memory_needs_;    // of on_memory_needs
  FileSystem* files_ = RealFileSystem();  // takes effect at Restart()
  MemoryLimit memory_;                    // likewise
  std::unique_ptr<FakeLoop> loop_;
  std::unique_ptr<ParameterServer> server_;
};

}  // namespace shoal
