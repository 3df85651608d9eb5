// A ps that is told to leave, as by SIGTERM.
#include <gmock/gmock.h>

#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

constexpr Time kGrace = std::chrono::seconds(20);

class ControlServiceLeaveTest : public ParameterServerTest {};

TEST_F(ControlServiceLeaveTest, ALeavingPsAsksForACheckpointFirst) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  EXPECT_TRUE(control.Take<proto::ControlReply>().has_departing());
  server_->Leave(kGrace);
  EXPECT_TRUE(control.quiet());
  EXPECT_EQ(stops_, 0);
  EXPECT_TRUE(Ask(control, Stop(kTerm)).has_stopping());
  EXPECT_EQ(stops_, 1);
}

TEST_F(ControlServiceLeaveTest, ALeavingPsTellsALaterCoordinator) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  Client successor = ConnectControl();
  EXPECT_TRUE(successor.Take<proto::ControlReply>().has_departing());
}

TEST_F(ControlServiceLeaveTest, ALeavingPsWaitsAtMostTheGracePeriod) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  loop_->Advance(kGrace - std::chrono::milliseconds(1));
  EXPECT_EQ(stops_, 0);
  loop_->Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(stops_, 1);
}

TEST_F(ControlServiceLeaveTest, ALeavingPsWaitsForACoordinatorWhoseStreamsBroke) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  server_->Leave(kGrace);
  worker.callbacks.on_closed(absl::OkStatus());
  EXPECT_EQ(stops_, 0);
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->Advance(std::chrono::milliseconds(1900));
  EXPECT_EQ(stops_, 0);
  Client again = ConnectControl();
  EXPECT_TRUE(again.Take<proto::ControlReply>().has_departing());
  loop_->Advance(std::chrono::milliseconds(1900));
  EXPECT_EQ(stops_, 0);
  again.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->Advance(std::chrono::seconds(2));
  EXPECT_EQ(stops_, 1) << "it is gone";
}

TEST_F(ControlServiceLeaveTest, ALeavingPsWaitsForACoordinatorThatWasGoneBefore) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  server_->Leave(kGrace);
  EXPECT_EQ(stops_, 0);
  loop_->Advance(std::chrono::seconds(2));
  EXPECT_EQ(stops_, 1);
}

TEST_F(ControlServiceLeaveTest, APsThatLeavesIsNotReady) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  EXPECT_EQ(server_->CheckReady().code(), absl::StatusCode::kFailedPrecondition);
  loop_->Advance(kGrace);
  EXPECT_EQ(server_->CheckReady().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(ControlServiceLeaveTest, AStoppedPsDoesNotStopAgain) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  server_->Leave(kGrace);
  Ask(control, Stop(kTerm));
  server_->Leave(kGrace);
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->Advance(kGrace);
  EXPECT_EQ(stops_, 1);
}

TEST_F(ControlServiceLeaveTest, AnEmptyPsLeavesAtOnce) {
  Client control = ConnectControl();
  server_->Leave(kGrace);
  EXPECT_EQ(stops_, 1);
}

}  // namespace
}  // namespace shoal
