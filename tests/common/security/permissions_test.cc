#include "common/security/permissions.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
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
  std::string messages;  // separated by spaces
  std::set<Role> servers;
  std::set<Role> clients;
};
const std::vector<ExpectedRow>& ExpectedRows() {
  static const auto* rows = new std::vector<ExpectedRow>{
      {"/shoal.proto.Coordinator/Work",
       "hello ready steps_done evaluation_done leaving timeline_lost draining waiting halted",
       {Role::kCoordinator},
       {Role::kWorker}},
      {"/shoal.proto.Evaluation/Evaluate",
       "hello ready values_wanted progress evaluated leaving",
       {Role::kCoordinator},
       {Role::kEvaluator}},
      {"/shoal.proto.ParameterServer/Exchange", "hello push pull", {Role::kPs}, {Role::kWorker}},
      {"/shoal.proto.ParameterServer/Control",
       "claim load fence release stop read_cut rows resign",
       {Role::kPs},
       {Role::kCoordinator}},
      {"/shoal.proto.Cluster/Status", "", {Role::kCoordinator}, {Role::kOperator, Role::kViewer}},
      {"/shoal.proto.Cluster/Drain", "", {Role::kCoordinator}, {Role::kOperator}},
      {"/shoal.proto.Cluster/Checkpoint", "", {Role::kCoordinator}, {Role::kOperator}},
      {"/metrics",
       "",
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

const Permission* FindRow(const std::string& method, const std::string& message) {
  for (const Permission& row : Permissions()) {
    if (row.method == method && row.message == message) return &row;
  }
  return nullptr;
}

TEST(PermissionsTest, EveryRequestOfEveryRoleToEveryDaemon) {
  size_t rows = 0;
  for (const ExpectedRow& expected : ExpectedRows()) {
    const std::vector<std::string> messages = absl::StrSplit(expected.messages, ' ');
    for (const std::string& message : messages) {
      const Permission* row = FindRow(expected.method, message);
      ASSERT_NE(row, nullptr) << expected.method << " " << message;
      ++rows;
      for (const Role server : kAllRoles) {
        for (const Role client : kAllRoles) {
          const auto code = !expected.servers.contains(server) ? absl::StatusCode::kUnimplemented
                            : expected.clients.contains(client)
                                ? absl::StatusCode::kOk
                                : absl::StatusCode::kPermissionDenied;
          const Identity own = Someone(server);
          const Identity peer = Someone(client);
          EXPECT_EQ(CheckPermitted(own, peer, row->request).code(), code)
              << expected.method << " " << message << " " << own.ToUri() << " " << peer.ToUri();
          EXPECT_EQ(CheckMethodPermitted(own, peer, expected.method).code(), code)
              << expected.method << " " << own.ToUri() << " " << peer.ToUri();
        }
      }
    }
  }
  EXPECT_EQ(rows, Permissions().size());
}

TEST(PermissionsTest, ARowIsFoundByItsRequest) {
  for (const Permission& row : Permissions()) EXPECT_EQ(&PermissionOf(row.request), &row);
}

// A new kind of message has no row, and nobody has decided who may send it.
TEST(PermissionsTest, EveryMessageOfAClientHasARow) {
  const std::map<std::string, const google::protobuf::Descriptor*> streams = {
      {kWorkMethod, proto::WorkerReport::descriptor()},
      {kEvaluateMethod, proto::EvaluatorReport::descriptor()},
      {kExchangeMethod, proto::ExchangeRequest::descriptor()},
      {kControlMethod, proto::ControlRequest::descriptor()},
  };
  std::vector<std::string> in_protos = {std::string(kMetricsPath) + " "};
  for (const auto& [method, descriptor] : streams) {
    const google::protobuf::OneofDescriptor* kinds = descriptor->FindOneofByName("kind");
    ASSERT_NE(kinds, nullptr) << method;
    for (int i = 0; i < kinds->field_count(); ++i)
      in_protos.push_back(method + " " + kinds->field(i)->name());
  }
  const google::protobuf::ServiceDescriptor* cluster =
      proto::StatusRequest::descriptor()->file()->FindServiceByName("Cluster");
  ASSERT_NE(cluster, nullptr);
  for (int i = 0; i < cluster->method_count(); ++i)
    in_protos.push_back("/shoal.proto.Cluster/" + cluster->method(i)->name() + " ");

  std::vector<std::string> in_table;
  for (const Permission& row : Permissions())
    in_table.push_back(std::string(row.method) + " " + std::string(row.message));
  EXPECT_THAT(in_table, UnorderedElementsAreArray(in_protos));
}

TEST(PermissionsTest, ARefusalNamesThePeerTheRequestAndWhoMay) {
  EXPECT_THAT(
      CheckPermitted(Someone(Role::kPs), Someone(Role::kWorker), PeerRequest::kClaim),
      FailsWith(absl::StatusCode::kPermissionDenied,
                {"spiffe://shoal/job/mnist/worker/3", "\"claim\"", kControlMethod, "coordinator"}));
  EXPECT_THAT(CheckMethodPermitted(Someone(Role::kCoordinator), Someone(Role::kPs), kStatusMethod),
              FailsWith(absl::StatusCode::kPermissionDenied,
                        {"spiffe://shoal/job/mnist/ps/3", kStatusMethod, "operator or viewer"}));
}

TEST(PermissionsTest, AnotherJobOrTrustDomainMayDoNothing) {
  Identity other_job = Someone(Role::kCoordinator);
  other_job.job = "imagenet";
  Identity other_domain = Someone(Role::kCoordinator);
  other_domain.trust_domain = "lab";
  for (const Identity& peer : {other_job, other_domain}) {
    EXPECT_THAT(CheckPermitted(Someone(Role::kPs), peer, PeerRequest::kClaim),
                FailsWith(absl::StatusCode::kPermissionDenied, {peer.ToUri()}));
    EXPECT_THAT(CheckMethodPermitted(Someone(Role::kPs), peer, kControlMethod),
                FailsWith(absl::StatusCode::kPermissionDenied, {peer.ToUri()}));
    EXPECT_THAT(CheckServer(Someone(Role::kWorker), peer, kWorkMethod, std::nullopt),
                FailsWith(absl::StatusCode::kPermissionDenied, {peer.ToUri()}));
  }
}

TEST(PermissionsTest, AnUnknownMethodIsServedByNobody) {
  for (const Role server : kAllRoles) {
    EXPECT_THAT(CheckMethodPermitted(Someone(server), Someone(Role::kOperator),
                                     "/shoal.proto.Cluster/Other"),
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
