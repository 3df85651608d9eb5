#include "common/security/permissions.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "common/rpc/methods.h"
#include "proto/cluster.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/evaluator.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

using ::testing::UnorderedElementsAreArray;

// The table once more. Whoever changes who may do what writes it twice.
struct ExpectedRow {
  std::string method;
  std::set<Role> servers;
  std::set<Role> clients;
};
const std::vector<ExpectedRow>& ExpectedRows() {
  static const auto* rows = new std::vector<ExpectedRow>{
      {"/shoal.proto.Coordinator/Work", {Role::kCoordinator}, {Role::kWorker}},
      {"/shoal.proto.Evaluation/Evaluate", {Role::kCoordinator}, {Role::kEvaluator}},
      {"/shoal.proto.ParameterServer/Exchange", {Role::kPs}, {Role::kWorker}},
      {"/shoal.proto.ParameterServer/Control", {Role::kPs}, {Role::kCoordinator}},
      {"/shoal.proto.Cluster/Status", {Role::kCoordinator}, {Role::kOperator, Role::kViewer}},
      {"/shoal.proto.Cluster/Drain", {Role::kCoordinator}, {Role::kOperator}},
      {"/shoal.proto.Cluster/Checkpoint", {Role::kCoordinator}, {Role::kOperator}},
      {"/metrics",
       {Role::kCoordinator, Role::kPs, Role::kWorker, Role::kEvaluator},
       {Role::kOperator, Role::kViewer}},
  };
  return *rows;
}

Identity Someone(Role role) {
  Identity identity = {.trust_domain = "shoal", .job = "mnist", .role = role};
  if (role == Role::kPs || role == Role::kWorker) identity.index = 3;
  return identity;
}

TEST(PermissionsTest, EveryMethodOfEveryRoleToEveryDaemon) {
  for (const ExpectedRow& expected : ExpectedRows()) {
    for (const Role server : kAllRoles) {
      for (const Role client : kAllRoles) {
        const auto code = !expected.servers.contains(server)  ? absl::StatusCode::kUnimplemented
                          : expected.clients.contains(client) ? absl::StatusCode::kOk
                                                              : absl::StatusCode::kPermissionDenied;
        const Identity own = Someone(server);
        const Identity peer = Someone(client);
        EXPECT_EQ(CheckPermitted(own, peer, expected.method).code(), code)
            << expected.method << " " << own.ToUri() << " " << peer.ToUri();
      }
    }
  }
  EXPECT_EQ(ExpectedRows().size(), Permissions().size());
}

// A new method has no row, and nobody has decided who may use it.
TEST(PermissionsTest, EveryMethodOfTheServicesHasARow) {
  std::vector<std::string> in_protos = {kMetricsPath};
  const google::protobuf::FileDescriptor* const files[] = {
      proto::StatusRequest::descriptor()->file(), proto::WorkerReport::descriptor()->file(),
      proto::EvaluatorReport::descriptor()->file(), proto::ExchangeRequest::descriptor()->file()};
  for (const auto* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      const google::protobuf::ServiceDescriptor& service = *file->service(i);
      for (int k = 0; k < service.method_count(); ++k)
        in_protos.push_back("/" + service.full_name() + "/" + service.method(k)->name());
    }
  }
  std::vector<std::string> in_table;
  for (const Permission& row : Permissions()) in_table.emplace_back(row.method);
  EXPECT_THAT(in_table, UnorderedElementsAreArray(in_protos));
}

TEST(PermissionsTest, ARefusalNamesThePeerTheMethodAndWhoMay) {
  EXPECT_THAT(CheckPermitted(Someone(Role::kPs), Someone(Role::kWorker), kControlMethod),
              FailsWith(absl::StatusCode::kPermissionDenied,
                        {"spiffe://shoal/job/mnist/worker/3", kControlMethod, "coordinator"}));
  EXPECT_THAT(CheckPermitted(Someone(Role::kCoordinator), Someone(Role::kPs), kStatusMethod),
              FailsWith(absl::StatusCode::kPermissionDenied,
                        {"spiffe://shoal/job/mnist/ps/3", kStatusMethod, "operator or viewer"}));
}

TEST(PermissionsTest, AnotherJobOrTrustDomainMayDoNothing) {
  Identity other_job = Someone(Role::kCoordinator);
  other_job.job = "imagenet";
  Identity other_domain = Someone(Role::kCoordinator);
  other_domain.trust_domain = "lab";
  for (const Identity& peer : {other_job, other_domain}) {
    EXPECT_THAT(CheckPermitted(Someone(Role::kPs), peer, kControlMethod),
                FailsWith(absl::StatusCode::kPermissionDenied, {peer.ToUri()}));
    EXPECT_THAT(CheckServer(Someone(Role::kWorker), peer, kWorkMethod, std::nullopt),
                FailsWith(absl::StatusCode::kPermissionDenied, {peer.ToUri()}));
  }
}

TEST(PermissionsTest, AnUnknownMethodIsServedByNobody) {
  for (const Role server : kAllRoles) {
    EXPECT_THAT(
        CheckPermitted(Someone(server), Someone(Role::kOperator), "/shoal.proto.Cluster/Other"),
        FailsWith(absl::StatusCode::kUnimplemented, {"/shoal.proto.Cluster/Other"}));
  }
}

TEST(PermissionsTest, AnIndexIsThatOfTheCertificate) {
  EXPECT_TRUE(CheckClaimedIndex(Someone(Role::kWorker), 3).ok());
  EXPECT_THAT(CheckClaimedIndex(Someone(Role::kWorker), 4),
              FailsWith(absl::StatusCode::kPermissionDenied,
                        {"spiffe://shoal/job/mnist/worker/3", "worker 4", "index 3"}));
  Identity elastic = Someone(Role::kWorker);
  elastic.index.reset();
  EXPECT_TRUE(CheckClaimedIndex(elastic, 4).ok());
}

TEST(PermissionsTest, AClientDemandsTheDaemonThatItMeans) {
  const Identity worker = Someone(Role::kWorker);
  const Identity ps = Someone(Role::kPs);
  const Identity coordinator = Someone(Role::kCoordinator);
  EXPECT_TRUE(CheckServer(worker, ps, kExchangeMethod, 3).ok());
  EXPECT_TRUE(CheckServer(coordinator, ps, kControlMethod, 3).ok());
  EXPECT_TRUE(CheckServer(worker, coordinator, kWorkMethod, std::nullopt).ok());
  EXPECT_TRUE(CheckServer(Someone(Role::kViewer), worker, kMetricsPath, std::nullopt).ok());
  EXPECT_THAT(CheckServer(worker, ps, kExchangeMethod, 2),
              FailsWith(absl::StatusCode::kPermissionDenied, {ps.ToUri(), "ps 2"}));
  // The address leads to another worker, who holds a certificate of the same job.
  EXPECT_THAT(CheckServer(worker, worker, kExchangeMethod, 3),
              FailsWith(absl::StatusCode::kPermissionDenied, {worker.ToUri(), "ps"}));
  EXPECT_THAT(CheckServer(worker, ps, kWorkMethod, std::nullopt),
              FailsWith(absl::StatusCode::kPermissionDenied, {ps.ToUri(), "coordinator"}));
  // Its own certificate would be refused: it need not ask.
  EXPECT_THAT(CheckServer(Someone(Role::kViewer), coordinator, kDrainMethod, std::nullopt),
              FailsWith(absl::StatusCode::kPermissionDenied, {"viewer", "operator"}));
}

TEST(PermissionsTest, AClientKnowsBeforeItConnectsWhatItMayNotCall) {
  EXPECT_TRUE(CheckMayCall(Someone(Role::kViewer), kStatusMethod).ok());
  EXPECT_TRUE(CheckMayCall(Someone(Role::kOperator), kDrainMethod).ok());
  EXPECT_THAT(CheckMayCall(Someone(Role::kViewer), kDrainMethod),
              FailsWith(absl::StatusCode::kPermissionDenied, {"viewer", kDrainMethod, "operator"}));
  EXPECT_THAT(CheckMayCall(Someone(Role::kOperator), "/shoal.proto.Cluster/Other"),
              FailsWith(absl::StatusCode::kUnimplemented, {"/shoal.proto.Cluster/Other"}));
}

}  // namespace
}  // namespace shoal
