#include "tests/simulation/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "common/files/durable_file.h"
#include "common/job/job_strategy.h"
#include "common/model/keras_model.h"
#include "common/step_plan/step_plan.h"
#include "tests/simulation/simulated/simulated_disk.h"
#include "tests/simulation/simulated/simulated_network.h"
#include "tests/simulation/simulated/simulated_process.h"
#include "tests/simulation/workload/draw_workload.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsSupersetOf;

TEST(SimulationTest, ASeedReplaysByteForByte) {
  for (uint64_t seed = 1; seed <= 25; ++seed) {
    const SimulationResult first = Simulate(seed, /*tracing=*/true);
    const SimulationResult second = Simulate(seed, /*tracing=*/true);
    EXPECT_FALSE(first.trace.empty());
    EXPECT_TRUE(first.trace == second.trace) << "seed " << seed;
    EXPECT_EQ(first.events, Simulate(seed, /*tracing=*/false).events)
        << "seed " << seed << ": looking on changes nothing";
  }
}

TEST(WorkloadTest, SeedsDrawEveryKindOfFault) {
  std::set<Fault::Kind> kinds;
  int without = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    without += workload.faults.empty() ? 1 : 0;
    for (const Fault& fault : workload.faults) kinds.insert(fault.kind);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(Fault::Kind::kChangeJob) + 1);
  EXPECT_GT(without, 10);
}

TEST(WorkloadTest, SeedsDrawVariablesOfEveryUpdateRule) {
  std::map<UpdateRule, int> models;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const absl::StatusOr<KerasModel> model = ParseKerasModel(DrawWorkload(seed).job.model_json);
    ASSERT_TRUE(model.ok()) << model.status();
    std::set<UpdateRule> rules;
    for (const Variable& variable : model->graph.variables()) rules.insert(variable.rule);
    for (const UpdateRule rule : rules) ++models[rule];
  }
  EXPECT_EQ(models[UpdateRule::kOptimizer], 200);
  EXPECT_GT(models[UpdateRule::kMovingAverage], 40);
  EXPECT_GT(models[UpdateRule::kFrozen], 40);
}

TEST(WorkloadTest, SeedsDrawTrainingsThatCallbacksEnd) {
  int with_callbacks = 0, early = 0, restored = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    const Workload::Ending& ending = workload.ending;
    const uint64_t all = workload.plan().total_steps();
    with_callbacks += workload.job.callbacks.empty() ? 0 : 1;
    early += ending.last_step < all ? 1 : 0;
    restored += ending.result_step < ending.last_step ? 1 : 0;
  }
  EXPECT_GT(with_callbacks, 30);
  EXPECT_GT(early, 15);
  EXPECT_GT(restored, 10);
}

TEST(WorkloadTest, SeedsDrawJobsThatTakeAnothersPlace) {
  int longer = 0, others = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    if (workload.next == nullptr) continue;
    const Workload& next = *workload.next;
    EXPECT_NE(next.job.Fingerprint(), workload.job.Fingerprint());
    longer += next.run_dir == workload.run_dir && next.job.epochs > workload.job.epochs ? 1 : 0;
    others += next.run_dir != workload.run_dir && next.job.seed != workload.job.seed ? 1 : 0;
  }
  EXPECT_GT(longer, 5);
  EXPECT_GT(others, 15);
}

TEST(WorkloadTest, SeedsDrawEveryStrategy) {
  int bounded = 0, rounds_of_several = 0, speculates = 0, rates_by_staleness = 0, local = 0,
      local_in_rounds = 0, fragments = 0, delayed = 0, scaled = 0, warm_ups = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    const Job::Strategy& strategy = workload.job.strategy;
    bounded += strategy.max_staleness.has_value() ? 1 : 0;
    rounds_of_several += strategy.gradients_per_update > 2 ? 1 : 0;
    speculates += strategy.speculate_after > 0 ? 1 : 0;
    rates_by_staleness += strategy.learning_rate_by_staleness ? 1 : 0;
    scaled += strategy.scale_learning_rate.empty() ? 0 : 1;
    warm_ups += strategy.warmup_steps > 0 ? 1 : 0;
    EXPECT_EQ(strategy.in_rounds(), strategy.gradients_per_update > 0);
    local += strategy.local() && strategy.batches_per_step > 1 ? 1 : 0;
    local_in_rounds += strategy.local() && strategy.in_rounds() ? 1 : 0;
    fragments += strategy.fragments > 1 ? 1 : 0;
    delayed += workload.momentum_every > 1 ? 1 : 0;
    EXPECT_TRUE(CheckRounds(workload.job, workload.plan().steps_per_epoch()).ok());
  }
  EXPECT_GT(bounded, 20);
  EXPECT_GT(rounds_of_several, 20) << "of fewer than three the sum shows no order";
  EXPECT_GT(speculates, 20);
  EXPECT_GT(rates_by_staleness, 10);
  EXPECT_GT(scaled, 5);
  EXPECT_GT(warm_ups, 10);
  EXPECT_GT(local, 20);
  EXPECT_GT(local_in_rounds, 5);
  EXPECT_GT(fragments, 5);
  EXPECT_GT(delayed, 10);
}

TEST(WorkloadTest, SeedsDrawStepsThatComeToNothing) {
  int overflowing = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Workload workload = DrawWorkload(seed);
    if (workload.overflows_one_in == 0) continue;
    ++overflowing;
    EXPECT_FALSE(workload.job.strategy.in_rounds() || workload.job.strategy.local());
  }
  EXPECT_GT(overflowing, 15);
}

// --- The disk ------------------------------------------------------------------------------------

// What is at `path` after the power has gone, for many seeds; "" where there is nothing.
template <typename Prepare>
std::set<std::string> AfterPowerLoss(const std::string& path, Prepare prepare) {
  std::set<std::string> contents;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimulatedDisk disk;
    prepare(&disk);
    Random random(seed);
    disk.LosePower(&random);
    contents.insert(ReadSmallFile(path, 1000, &disk).value_or(""));
  }
  return contents;
}

TEST(SimulatedDiskTest, WhatWasSyncedLasts) {
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "abc", disk).ok());
                               ASSERT_TRUE(disk->SyncDirectory("/").ok());
                             }),
              ElementsAre("abc"));
}

TEST(SimulatedDiskTest, AFileThatIsNotSyncedIsTorn) {
  const std::set<std::string> contents = AfterPowerLoss("/file", [](SimulatedDisk* disk) {
    const auto file = *disk->Open("/file", FileSystem::Mode::kCreate);
    ASSERT_TRUE(disk->SyncDirectory("/").ok());
    ASSERT_TRUE(file->Allocate(4).ok());
    ASSERT_TRUE(file->WriteAt(0, "ab", 2).ok());
    ASSERT_TRUE(file->WriteAt(2, "cd", 2).ok());
  });
  const std::string zeros(4, '\0');
  EXPECT_THAT(contents,
              IsSupersetOf({std::string(), zeros, "ab" + zeros.substr(2), "a" + zeros.substr(1),
                            zeros.substr(2) + "cd", std::string("abcd")}));
}

TEST(SimulatedDiskTest, ANameThatIsNotSyncedIsThereOrNot) {
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "abc", disk).ok());
                             }),
              ElementsAre("", "abc"));
  EXPECT_THAT(AfterPowerLoss("/file",
                             [](SimulatedDisk* disk) {
                               ASSERT_TRUE(WriteNewFile("/file", "old", disk).ok());
                               ASSERT_TRUE(WriteNewFile("/new", "new", disk).ok());
                               ASSERT_TRUE(disk->SyncDirectory("/").ok());
                               ASSERT_TRUE(disk->Rename("/new", "/file").ok());
                             }),
              ElementsAre("new", "old"))
      << "a rename is whole or absent";
}

// --- The network ---------------------------------------------------------------------------------

class SimulatedNetworkTest : public testing::Test, public SimulatedNetwork::Observer {
 protected:
  void OnSent(SimulatedProcess&, const std::string&, bool, const Message&) override {}
  void OnReceived(SimulatedProcess&, const std::string&, const std::string&, bool,
                  const Message&) override {}
  void OnFinished(SimulatedProcess&, const std::string&, const absl::Status&) override {}

  // Sends ten messages from a client to a server, does `then` after `wait`, and returns what has
  // arrived; "closed" where the server's end was closed.
  template <typename Then>
  std::string Arrivals(uint64_t seed, Time wait, Then then) {
    World world(seed, false);
    SimulatedNetwork network(&world, this);
    SimulatedProcess client({.world = &world, .network = &network, .name = "a", .host = "a"});
    SimulatedProcess server({.world = &world, .network = &network, .name = "b", .host = "b"});
    std::string arrived;
    std::unique_ptr<Stream> accepted;
    (void)server.Listen("b", [&](const std::string&, std::unique_ptr<Stream> stream) {
      accepted = std::move(stream);
      return StreamCallbacks{
          .on_message = [&](const Message& message) { arrived += message.fields; },
          .on_closed = [&](const absl::Status&) { arrived += " closed"; }};
    });
    std::unique_ptr<Stream> stream = network.Open(&client, "b", kWorkMethod, {});
    for (char digit = '0'; digit <= '9'; ++digit) stream->Send({.fields = std::string(1, digit)});
    world.After(wait, [&] { then(network, server, stream); });
    while (world.RunNext()) {
    }
    client.Kill();
    server.Kill();
    network.ProcessGone(&client, false, milliseconds(1));
    network.ProcessGone(&server, false, milliseconds(1));
    return arrived;
  }
};

TEST_F(SimulatedNetworkTest, AStreamDeliversInOrder) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(1000), [](auto&...) {}), "0123456789");
  }
}

TEST_F(SimulatedNetworkTest, ABrokenStreamLosesATail) {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    seen.insert(Arrivals(seed, Time(100'000),
                         [](SimulatedNetwork& network, SimulatedProcess& server, auto&) {
                           network.BreakAll(&server, milliseconds(1));
                         }));
  }
  EXPECT_THAT(seen, IsSupersetOf({"0 closed", "01234 closed", "0123456789 closed"}));
  for (const std::string& arrived : seen) {
    EXPECT_EQ(
        std::string("0123456789").compare(0, arrived.find(' '), arrived, 0, arrived.find(' ')),
        arrived.empty() ? 1 : 0)
        << arrived;
  }
}

TEST_F(SimulatedNetworkTest, WhatACutHoldsUpArrivesWhenItIsMended) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(100'000),
                       [](SimulatedNetwork& network, SimulatedProcess& server, auto&) {
                         network.Cut("a", "b");
                         server.world().After(std::chrono::seconds(3),
                                              [&network] { network.Mend("a", "b"); });
                       }),
              "0123456789");
  }
}

TEST_F(SimulatedNetworkTest, AFrozenProcessReceivesWhenItGoesOn) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_EQ(Arrivals(seed, Time(100'000),
                       [](SimulatedNetwork&, SimulatedProcess& server, auto&) {
                         server.Freeze();
                         server.world().After(std::chrono::seconds(3),
                                              [&server] { server.Thaw(); });
                       }),
              "0123456789");
  }
}

}  // namespace
}  // namespace shoal
