// What a ps shows to Prometheus.

#include <gmock/gmock.h>

#include "tests/common/metrics/sample_value.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

constexpr uint64_t kThirdTerm = uint64_t{3} << 32 | 5;

class ParameterServerMetricsTest : public ParameterServerTest {
 protected:
  std::optional<double> Value(MetricName metric, const std::vector<std::string>& labels = {}) {
    return SampleValue(*server_, metric, labels);
  }
};

TEST_F(ParameterServerMetricsTest, CountsAppliedRepeatedAndRejectedPushes) {
  Client control = ConnectControl();
  EXPECT_EQ(Value("shoal_ps_chunks"), 0);
  LoadJob(control, kThirdTerm);
  EXPECT_EQ(Value("shoal_ps_chunks"), 4);
  EXPECT_EQ(Value("shoal_ps_loads_total"), 1);
  EXPECT_EQ(Value("shoal_ps_term"), 3);
  EXPECT_EQ(Value("shoal_ps_timeline"), 3);
  Client worker = ConnectWorker();
  EXPECT_EQ(Value("shoal_ps_streams", {"control"}), 1);
  EXPECT_EQ(Value("shoal_ps_streams", {"exchange"}), 1);
  Push(worker, kThirdTerm, 0, 1);
  Push(worker, kThirdTerm, 0, 1);
  Push(worker, kThirdTerm, 1, 1, /*want_values=*/false, /*pulled_version=*/1);
  Push(worker, kThirdTerm + 1, 1, 1);
  EXPECT_EQ(Value("shoal_ps_updates_total"), 2);
  EXPECT_EQ(Value("shoal_ps_repeated_updates_total"), 1);
  EXPECT_EQ(Value("shoal_ps_refused_requests_total"), 1);
  EXPECT_EQ(Value("shoal_ps_staleness_updates"), 2);
  EXPECT_EQ(Value("shoal_ps_apply_seconds"), 2);
}

TEST_F(ParameterServerMetricsTest, CountsSkippedSteps) {
  Client control = ConnectControl();
  LoadJob(control, kThirdTerm);
  Client worker = ConnectWorker();
  PushSkip(worker, kThirdTerm, 0, 1);
  PushSkip(worker, kThirdTerm, 0, 1);
  Push(worker, kThirdTerm, 1, 1);
  EXPECT_EQ(Value("shoal_ps_skipped_updates_total"), 1);
  EXPECT_EQ(Value("shoal_ps_repeated_updates_total"), 1);
  EXPECT_EQ(Value("shoal_ps_updates_total"), 1);
}

TEST_F(ParameterServerMetricsTest, CountsPayloadByWorkerAndDirection) {
  Client control = ConnectControl();
  LoadJob(control, kThirdTerm);
  Client worker = ConnectWorker();
  const double chunk_bytes = static_cast<double>(shard_map_.ps(0).chunks[1].size * sizeof(float));
  Push(worker, kThirdTerm, 0, 1, /*want_values=*/true);
  EXPECT_EQ(Value("shoal_ps_payload_bytes_total", {"1", "received", "tcp"}), chunk_bytes);
  EXPECT_EQ(Value("shoal_ps_payload_bytes_total", {"1", "sent", "tcp"}), chunk_bytes);
  Push(worker, kThirdTerm, 1, 1, /*want_values=*/false);
  EXPECT_EQ(Value("shoal_ps_payload_bytes_total", {"1", "received", "tcp"}), 2 * chunk_bytes);
  EXPECT_EQ(Value("shoal_ps_payload_bytes_total", {"1", "sent", "tcp"}), chunk_bytes);
}

TEST_F(ParameterServerMetricsTest, StatsOutliveATimeline) {
  Client control = ConnectControl();
  LoadJob(control, kThirdTerm);
  Client worker = ConnectWorker();
  PushStep(worker, kThirdTerm, 0);
  const auto updates = Value("shoal_ps_updates_total");
  LoadJob(control, kThirdTerm + 1);
  EXPECT_EQ(Value("shoal_ps_updates_total"), updates);
  EXPECT_EQ(Value("shoal_ps_loads_total"), 2);
}

TEST_F(ParameterServerMetricsTest, WorkersThatLieAboutTheirIndexDoNotFillTheMemory) {
  ServerStats stats;
  for (uint32_t worker = 0; worker < 100000; ++worker)
    stats.TrafficOf(worker, "ipv4:10.0.0.1:5")->received_bytes += 1;
  MetricSamples samples;
  stats.Collect(&samples);
  EXPECT_LT(samples.samples().size(), 10000u);
  EXPECT_EQ(SampleValue(stats, "shoal_ps_payload_bytes_total", {"other", "received", "tcp"}),
            100000 - 4096);
}

TEST_F(ParameterServerMetricsTest, ReadyUnlessItLoadsOrIsStopped) {
  EXPECT_EQ(server_->CheckReady(), absl::OkStatus()) << "a coordinator need not be there";
  Client control = ConnectControl();
  Ask(control, Claim(kThirdTerm));
  loop_->set_hold_offloads(true);
  SendOnly(control, Load(kThirdTerm, job_.ResolvedText()));
  EXPECT_EQ(server_->CheckReady(), absl::UnavailableError("loading variables"));
  loop_->set_hold_offloads(false);
  loop_->RunUntilIdle();
  EXPECT_EQ(server_->CheckReady(), absl::OkStatus());
  Ask(control, Stop(kThirdTerm));
  EXPECT_EQ(server_->CheckReady(), absl::FailedPreconditionError("stopped"));
}

}  // namespace
}  // namespace shoal
