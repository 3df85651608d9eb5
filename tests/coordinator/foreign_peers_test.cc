// Workers and ps that say what none of ours says: a TrainingRun names them and goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "common/base/version.h"
#include "tests/coordinator/scripted_cluster.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// --- Workers that report what is not so ----------------------------------------------------------

TEST(ForeignWorkerTest, AStepThatNoPsHasIsLeasedAgainAndItsReporterTurnedAway) {
  ScriptedCluster cluster({.ps = 2, .checkpoint = R"({"every_steps": 4})"});
  ScriptedWorker& liar = cluster.Join(0);
  ScriptedWorker& honest = cluster.Join(1);
  EXPECT_THAT(liar.leases, ElementsAre(0, 1));
  cluster.ps[1]->applied.insert(0);
  liar.Report(0);
  cluster.Settle();
  cluster.FinishStep(honest);
  EXPECT_EQ(cluster.run->Status().steps_done(), 2u);
  EXPECT_THAT(liar.rejected, IsEmpty()) << "nobody has been asked yet";
  cluster.Advance(seconds(1));
  EXPECT_THAT(liar.rejected, AllOf(HasSubstr("step 0 "), HasSubstr("ps 0 at ps-0:1 ")));
  cluster.FinishAll(honest);
  cluster.Advance(seconds(1));
  EXPECT_THAT(honest.leased, AllOf(Contains(0), Contains(1)));
  EXPECT_THAT(honest.rejected, IsEmpty());
  EXPECT_TRUE(honest.job_done);
  EXPECT_THAT(cluster.StoredSteps(), Contains(26));
}

// The last step of all: the cut at the end waits for it, and nobody has it.
TEST(ForeignWorkerTest, TheFinalCheckpointDoesNotWaitForAStepThatWasNeverPushed) {
  ScriptedCluster cluster({.epochs = 1});
  ScriptedWorker& liar = cluster.Join(0);
  while (liar.leases.size() > 1) cluster.FinishStep(liar);
  EXPECT_THAT(liar.leases, ElementsAre(12));
  liar.Report(12);
  cluster.Settle();
  EXPECT_THAT(cluster.StoredSteps(), IsEmpty());
  ScriptedWorker& honest = cluster.Join(1);
  cluster.Advance(seconds(2));
  EXPECT_THAT(honest.leases, ElementsAre(12));
  cluster.FinishAll(honest);
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(13));
  EXPECT_TRUE(honest.job_done);
}

// More than the applied set of a ps tells of: they are asked anew, and know what is done.
TEST(ForeignWorkerTest, AReportOfMoreThanAWindowLosesNothing) {
  ScriptedCluster cluster(
      {.checkpoint = R"({"every_seconds": 0})",
       .strategy =
           R"({"name": "async", "min_shard_bytes": 256, "chunk_bytes": 1024, "window_steps": 4})",
       .epochs = 1});
  ScriptedWorker& liar = cluster.Join(0);
  cluster.FinishStep(liar);
  for (uint64_t step = 1; step < 8; ++step) {
    liar.Report(step);
    cluster.Settle();
  }
  EXPECT_EQ(cluster.run->Status().base_step(), 8u);
  cluster.Advance(seconds(2));
  EXPECT_EQ(cluster.run->Status().base_step(), 1u);
  EXPECT_THAT(liar.rejected, HasSubstr("ps 0 at ps-0:1 "));
  ScriptedWorker& honest = cluster.Join(1);
  cluster.FinishAll(honest);
  cluster.Advance(seconds(1));
  EXPECT_THAT(cluster.StoredSteps(), ElementsAre(13));
}

TEST(ForeignWorkerTest, ResultsThatCannotBeAreNotCounted) {
  ScriptedCluster cluster({});
  const auto report = [&cluster](uint32_t index, uint32_t examples, int metrics) {
    ScriptedWorker& worker = cluster.Join(index);
    proto::WorkerReport report;
    report.mutable_steps_done()->set_timeline(worker.timeline);
    proto::StepDone* done = report.mutable_steps_done()->add_steps();
    done->set_step(worker.leases.front());
    done->set_examples(examples);
    for (int i = 0; i < metrics; ++i) done->add_metric_sums(1);
    worker.stream().Send(report);
    cluster.Settle();
    return worker.rejected;
  };
  EXPECT_THAT(report(0, UINT32_MAX, 1), HasSubstr("4294967295 examples"));
  EXPECT_THAT(report(1, 0, 1), HasSubstr(" 0 examples"));
  EXPECT_THAT(report(2, 16, 100), HasSubstr(" 100 sums"));
  EXPECT_EQ(cluster.run->Status().steps_done(), 0u);
}

TEST(ForeignWorkerTest, AStepThatTheJobDoesNotHaveIsNotCounted) {
  ScriptedCluster cluster({.epochs = 1});
  ScriptedWorker& liar = cluster.Join(0);
  liar.Report(13, 16);
  cluster.Settle();
  EXPECT_THAT(liar.rejected, HasSubstr("step 13"));
  EXPECT_EQ(cluster.run->Status().steps_done(), 0u);
}

TEST(ForeignWorkerTest, ATestSetThatTheJobDoesNotHaveIsNotBelieved) {
  for (const uint64_t has : {0, 50}) {
    ScriptedCluster cluster({.test_examples = has});
    ScriptedWorker& liar = cluster.Connect({});
    cluster.SendReady(liar, ScriptedCluster::kExamples, 50 - has);
    EXPECT_THAT(liar.rejected, HasSubstr("$.data.test"));
    EXPECT_FALSE(cluster.Join(1).leases.empty());
  }
}

TEST(ForeignWorkerTest, ABatchIsOfAsManyExamplesAsItHas) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& honest = cluster.Join(0);
  while (honest.evaluations.empty()) cluster.FinishStep(honest);
  const proto::Evaluate order = honest.evaluations.front();
  uint32_t index = 1;
  for (const auto& [batch, examples] :
       {std::pair(0, 15), std::pair(0, 17), std::pair(3, 16), std::pair(4, 2)}) {
    ScriptedWorker& liar = cluster.Join(index++ % 2 + 1);
    proto::WorkerReport report;
    proto::EvaluationDone* done = report.mutable_evaluation_done();
    done->set_timeline(order.timeline());
    done->set_cut_step(order.cut_step());
    done->set_batch(batch);
    done->set_examples(examples);
    done->add_metric_sums(1);
    liar.stream().Send(report);
    cluster.Settle();
    EXPECT_THAT(liar.rejected, HasSubstr("test set"));
    cluster.Disconnect(liar);
  }
  while (!honest.evaluations.empty()) {
    honest.Evaluate();
    cluster.Settle();
  }
  EXPECT_EQ(cluster.run->Status().history(0).test_loss(), honest.test_loss);
}

TEST(ForeignWorkerTest, LongNamesDoNotBreakTheStatus) {
  ScriptedCluster cluster({});
  for (int i = 0; i < 2; ++i) {
    auto stream = std::make_shared<FarEnd>(&cluster.loop, "host", kWorkMethod);
    stream->set_callbacks(*cluster.run->Accept(kWorkMethod, stream->MakeStream()));
    proto::WorkerReport report;
    report.mutable_hello()->set_version(kVersion);
    report.mutable_hello()->set_index(i);
    report.mutable_hello()->set_host(std::string(40 << 20, 'x'));
    stream->Send(report);
    report.mutable_leaving()->set_reason(std::string(40 << 20, 'y'));
    stream->Send(report);
    cluster.Settle();
  }
  const proto::StatusReply status = cluster.run->Status();
  EXPECT_EQ(status.tasks_size(), 1 + 3);
  EXPECT_LT(status.ByteSizeLong(), size_t{10} << 10);
}

TEST(ForeignWorkerTest, TheStatusTellsTheActivityOfAWorker) {
  ScriptedCluster cluster({.checkpoint = R"({"every_steps": 4})"});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.FinishStep(worker);
  proto::WorkerReport report;
  report.mutable_waiting()->set_what("pulling the parameters from ps 0 at ps-0:1 for 6 s");
  worker.stream().Send(report);
  cluster.Advance(seconds(8));
  const auto names_worker =
      AllOf(HasSubstr("worker 0"), HasSubstr("pulling the parameters from ps 0 at ps-0:1"));
  EXPECT_THAT(cluster.run->Status().waiting(),
              ElementsAre(AllOf(HasSubstr("ps 0 "), HasSubstr(" below 4"), HasSubstr("step 1 "),
                                names_worker),
                          names_worker));
  EXPECT_THAT(cluster.WorkerStatus(0).detail(), HasSubstr("pulling"));
  cluster.FinishStep(worker);
  EXPECT_THAT(cluster.WorkerStatus(0).detail(), IsEmpty()) << "it goes on";
}

// --- ps ------------------------------------------------------------------------------------------

TEST(ForeignPsTest, APsThatRejectsEveryFenceIsAskedWithPauses) {
  ScriptedCluster cluster({.test_examples = 50});
  ScriptedWorker& worker = cluster.Join(0);
  cluster.ps[0]->rejects_fences_with = UINT64_MAX;
  for (int i = 0; i < 12; ++i) cluster.FinishStep(worker);
  const uint64_t before = cluster.ps[0]->fences_rejected;
  cluster.Advance(seconds(20));
  EXPECT_GT(cluster.ps[0]->fences_rejected, before);
  EXPECT_LE(cluster.ps[0]->fences_rejected, before + 5);
  EXPECT_THAT(cluster.run->Status().last_checkpoint().last_error(),
              AllOf(HasSubstr("ps 0: "), HasSubstr("step 18446744073709551615")));
  // A ps in its place mends it.
  cluster.ps[0]->rejects_fences_with.reset();
  cluster.Advance(seconds(6));
  cluster.FinishAll(worker);
  EXPECT_THAT(cluster.StoredSteps(), Contains(13));
  EXPECT_FALSE(worker.evaluations.empty());
}

// --- Anything ------------------------------------------------------------------------------------

class ForeignPeersFuzzTest : public testing::TestWithParam<int> {
 protected:
  uint64_t Number() {
    const uint64_t numbers[] = {0,          1,          2,  12,  13, 26, cluster_.run->timeline(),
                                UINT32_MAX, UINT64_MAX, 25, 4096};
    return numbers[random_() % std::size(numbers)];
  }
  uint64_t Timeline() { return random_() % 4 == 0 ? Number() : cluster_.run->timeline(); }
  std::string Text() { return std::string(random_() % 3 * 5000, 't'); }

  proto::WorkerReport RandomReport() {
    proto::WorkerReport report;
    switch (random_() % 8) {
      case 0:
        report.mutable_hello()->set_version(random_() % 4 == 0 ? Text() : kVersion);
        if (random_() % 2 == 0) report.mutable_hello()->set_index(Number());
        report.mutable_hello()->set_host(Text());
        report.mutable_hello()->set_incarnation(random_());
        report.mutable_hello()->set_timeline(Timeline());
        for (int i = 0; i < 3; ++i) report.mutable_hello()->add_held_steps(Number());
        break;
      case 1:
        report.mutable_ready()->set_training_examples(random_() % 2 == 0 ? Number() : 200);
        report.mutable_ready()->set_test_examples(random_() % 2 == 0 ? Number() : 50);
        report.mutable_ready()->set_shard_map_fingerprint(cluster_.shard_map_fingerprint());
        report.mutable_ready()->set_job_fingerprint(
            random_() % 8 == 0 ? Number() : cluster_.run->Status().job_fingerprint());
        break;
      case 2:
        report.mutable_steps_done()->set_timeline(Timeline());
        for (int i = 0; i < 3; ++i) {
          proto::StepDone* done = report.mutable_steps_done()->add_steps();
          done->set_step(Number());
          done->set_examples(random_() % 3 == 0 ? Number() : 10);
          done->set_loss_sum(1e308);
          for (uint64_t m = random_() % 3; m > 0; --m) done->add_metric_sums(1);
        }
        break;
      case 3:
        report.mutable_evaluation_done()->set_timeline(Timeline());
        report.mutable_evaluation_done()->set_cut_step(Number());
        report.mutable_evaluation_done()->set_batch(Number());
        report.mutable_evaluation_done()->set_examples(random_() % 2 == 0 ? Number() : 10);
        report.mutable_evaluation_done()->add_metric_sums(1);
        break;
      case 4:
        report.mutable_leaving()->set_reason(Text());
        break;
      case 5:
        report.mutable_timeline_lost()->set_timeline(Timeline());
        break;
      case 6:
        report.mutable_draining();
        break;
      case 7:
        report.mutable_waiting()->set_what(Text());
        break;
    }
    return report;
  }
  // Of those that a ps may say without ending the job by right: no newer term, and no Load failed
  // because of the job.
  proto::ControlReply RandomReply() {
    proto::ControlReply reply;
    const uint64_t term = random_() % 2 == 0 ? Number() : cluster_.run->Status().term();
    switch (random_() % 9) {
      case 0:
        reply.mutable_claimed()->set_promised_term(term);
        reply.mutable_claimed()->set_timeline(Timeline());
        reply.mutable_claimed()->set_base(Number());
        reply.mutable_claimed()->set_done_below(Number());
        reply.mutable_claimed()->add_applied_after_base(Number());
        break;
      case 1:
        reply.mutable_loaded()->set_timeline(term);
        break;
      case 2:
        reply.mutable_load_failed()->set_term(term);
        reply.mutable_load_failed()->set_other_incarnation(true);
        reply.mutable_load_failed()->set_reason(Text());
        break;
      case 3:
        reply.mutable_fence_accepted()->set_term(term);
        reply.mutable_fence_accepted()->set_cut_step(Number());
        break;
      case 4:
        reply.mutable_fence_rejected()->set_term(term);
        reply.mutable_fence_rejected()->set_cut_step(Number());
        reply.mutable_fence_rejected()->set_highest_step(Number());
        reply.mutable_fence_rejected()->set_reason(Text());
        break;
      case 5:
        reply.mutable_cut_ready()->set_term(term);
        reply.mutable_cut_ready()->set_cut_step(Number());
        break;
      case 6: {
        reply.mutable_written()->set_term(term);
        reply.mutable_written()->set_cut_step(Number());
        reply.mutable_written()->set_not_seen(random_() % 3 == 0);
        proto::WrittenRange* range = reply.mutable_written()->add_ranges();
        range->set_file(random_() % 2 == 0 ? "../../x" : Text());
        range->set_offset_bytes(Number());
        range->set_size_bytes(Number());
        break;
      }
      case 7:
        reply.mutable_cut_rows()->set_term(term);
        reply.mutable_cut_rows()->set_cut_step(Number());
        reply.mutable_cut_rows()->set_chunk(Number());
        reply.mutable_cut_rows()->set_part(Number());
        reply.mutable_cut_rows()->set_values(Text());
        break;
      case 8:
        reply.mutable_rows_wanted()->set_term(term);
        reply.mutable_rows_wanted()->set_tensor(Text());
        reply.mutable_rows_wanted()->set_offset_bytes(Number());
        reply.mutable_rows_wanted()->set_size_bytes(Number());
        break;
    }
    return reply;
  }
  // A job goes on, however it was lied to, or is done, if that was the lie, or fails and says why.
  void ExpectSound(ScriptedWorker::Hello hello) {
    if (cluster_.over.has_value()) {
      EXPECT_TRUE(cluster_.over->ok() || !cluster_.over->message().empty());
      return;
    }
    (void)cluster_.run->Status();
    ScriptedWorker& worker = cluster_.Connect(hello);
    EXPECT_TRUE(worker.welcomed || worker.job_done) << worker.rejected;
  }

  ScriptedCluster cluster_{{.test_examples = 50}};
  std::mt19937_64 random_{static_cast<uint64_t>(GetParam())};
};

TEST_P(ForeignPeersFuzzTest, WorkersNeverEndARun) {
  ScriptedWorker& honest = cluster_.Join({.index = 2, .incarnation = 3});
  std::vector<std::shared_ptr<FarEnd>> staying;
  for (int stream = 0; stream < 30; ++stream) {
    const bool stays = stream % 2 == 1;
    auto far = std::make_shared<FarEnd>(&cluster_.loop, "host", kWorkMethod);
    far->set_callbacks(*cluster_.run->Accept(kWorkMethod, far->MakeStream()));
    proto::WorkerReport hello;
    hello.mutable_hello()->set_version(kVersion);
    if (!stays) hello.mutable_hello()->set_index(random_() % 2);
    hello.mutable_hello()->set_incarnation(random_());
    far->Send(hello);
    for (int i = 0; i < 20; ++i) {
      far->Send(RandomReport());
      cluster_.Advance(milliseconds(random_() % 100));
      if (!honest.leases.empty() && random_() % 4 == 0) cluster_.FinishStep(honest);
    }
    if (stays) {
      staying.push_back(far);
    } else {
      far->Close(absl::UnavailableError("gone"));  // or the next one would not get its index
    }
    cluster_.Settle();
    ASSERT_FALSE(cluster_.over.has_value() && !cluster_.over->ok()) << *cluster_.over;
  }
  cluster_.Disconnect(honest);
  ExpectSound({.index = 2, .incarnation = 4});
}

TEST_P(ForeignPeersFuzzTest, PsNeverCrashARun) {
  cluster_.ps[0]->lied_about = true;
  ScriptedWorker* worker = &cluster_.Join({.index = 2, .incarnation = 3});
  for (int i = 0; i < 300 && !cluster_.over.has_value(); ++i) {
    cluster_.network.Newest("ps-0:1").Send(RandomReply());
    cluster_.Advance(milliseconds(random_() % 50));
    if (!worker->leases.empty() && random_() % 4 == 0) cluster_.FinishStep(*worker);
    if (!worker->evaluations.empty() && random_() % 4 == 0) worker->Evaluate();
  }
  ExpectSound({.index = 1, .incarnation = 2});
}

INSTANTIATE_TEST_SUITE_P(Seeds, ForeignPeersFuzzTest, testing::Range(0, 20));

}  // namespace
}  // namespace shoal
