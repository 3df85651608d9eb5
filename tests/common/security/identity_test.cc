#include "common/security/identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/common/base/fails_with.h"

namespace shoal {
namespace {

struct GoodIdentity {
  std::string uri;
  Identity identity;
};

TEST(IdentityTest, EveryRoleIsReadAndWritten) {
  const GoodIdentity cases[] = {
      {"spiffe://shoal/job/mnist/coordinator", {"shoal", "mnist", Role::kCoordinator}},
      {"spiffe://shoal/job/mnist/ps/0", {"shoal", "mnist", Role::kPs, 0}},
      {"spiffe://shoal/job/mnist/ps/99999", {"shoal", "mnist", Role::kPs, 99999}},
      {"spiffe://shoal/job/mnist/worker/10", {"shoal", "mnist", Role::kWorker, 10}},
      {"spiffe://shoal/job/mnist/worker", {"shoal", "mnist", Role::kWorker}},
      {"spiffe://shoal/job/mnist/evaluator", {"shoal", "mnist", Role::kEvaluator}},
      {"spiffe://shoal/job/mnist/operator", {"shoal", "mnist", Role::kOperator}},
      {"spiffe://shoal/job/mnist/viewer", {"shoal", "mnist", Role::kViewer}},
      {"spiffe://a-1.b_2/job/My.job-1_x/viewer", {"a-1.b_2", "My.job-1_x", Role::kViewer}},
      {"spiffe://shoal/job/.../viewer", {"shoal", "...", Role::kViewer}},
      {"spiffe://shoal/job/ps/ps/1", {"shoal", "ps", Role::kPs, 1}},
  };
  for (const auto& [uri, identity] : cases) {
    const absl::StatusOr<Identity> parsed = ParseIdentity(uri);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, identity) << uri;
    EXPECT_EQ(identity.ToUri(), uri);
  }
}

TEST(IdentityTest, AnythingElseIsRejected) {
  for (const std::string uri : {
           "",
           "spiffe://",
           "spiffe:///job/mnist/viewer",
           "https://shoal/job/mnist/viewer",
           "SPIFFE://shoal/job/mnist/viewer",
           "spiffe:/shoal/job/mnist/viewer",
           " spiffe://shoal/job/mnist/viewer",
           "spiffe://shoal/job/mnist/viewer ",
           "spiffe://shoal/job/mnist/viewer\n",
           "spiffe://Shoal/job/mnist/viewer",
           "spiffe://shoal:443/job/mnist/viewer",
           "spiffe://ada@shoal/job/mnist/viewer",
           "spiffe://sh\xc3\xb6l/job/mnist/viewer",
           "spiffe://shoal",
           "spiffe://shoal/",
           "spiffe://shoal/job/mnist",
           "spiffe://shoal/job/mnist/",
           "spiffe://shoal/jobs/mnist/viewer",
           "spiffe://shoal/Job/mnist/viewer",
           "spiffe://shoal/job//viewer",
           "spiffe://shoal//job/mnist/viewer",
           "spiffe://shoal/job/./viewer",
           "spiffe://shoal/job/../viewer",
           "spiffe://shoal/job/mn%69st/viewer",
           "spiffe://shoal/job/mn ist/viewer",
           "spiffe://shoal/job/mnist/viewer/",
           "spiffe://shoal/job/mnist/viewer?x=1",
           "spiffe://shoal/job/mnist/viewer#x",
           "spiffe://shoal/job/mnist/chief",
           "spiffe://shoal/job/mnist/Viewer",
           "spiffe://shoal/job/mnist/ps",
           "spiffe://shoal/job/mnist/ps/",
           "spiffe://shoal/job/mnist/ps/00",
           "spiffe://shoal/job/mnist/ps/01",
           "spiffe://shoal/job/mnist/ps/-1",
           "spiffe://shoal/job/mnist/ps/+1",
           "spiffe://shoal/job/mnist/ps/1x",
           "spiffe://shoal/job/mnist/ps/0x1",
           "spiffe://shoal/job/mnist/ps/100000",
           "spiffe://shoal/job/mnist/ps/99999999999999999999",
           "spiffe://shoal/job/mnist/ps/1/2",
           "spiffe://shoal/job/mnist/worker/",
           "spiffe://shoal/job/mnist/coordinator/0",
           "spiffe://shoal/job/mnist/evaluator/0",
           "spiffe://shoal/job/mnist/operator/0",
           "spiffe://shoal/job/mnist/viewer/0",
       }) {
    EXPECT_THAT(ParseIdentity(uri).status(), FailsWith(absl::StatusCode::kInvalidArgument)) << uri;
  }
}

TEST(IdentityTest, AZeroByteEndsNothing) {
  const std::string uri("spiffe://shoal/job/mnist/viewer\0.evil", 37);
  EXPECT_THAT(ParseIdentity(uri).status(), FailsWith(absl::StatusCode::kInvalidArgument));
}

TEST(IdentityTest, LengthsHaveLimits) {
  const std::string domain(kMaxTrustDomainBytes, 'd');
  EXPECT_TRUE(ParseIdentity("spiffe://" + domain + "/job/j/viewer").ok());
  EXPECT_THAT(ParseIdentity("spiffe://" + domain + "d/job/j/viewer").status(),
              FailsWith(absl::StatusCode::kInvalidArgument));
  const std::string front = "spiffe://d/job/";
  const std::string end = "/viewer";
  const std::string job(kMaxIdentityBytes - front.size() - end.size(), 'j');
  EXPECT_TRUE(ParseIdentity(front + job + end).ok());
  EXPECT_THAT(ParseIdentity(front + job + "j" + end).status(),
              FailsWith(absl::StatusCode::kInvalidArgument, {"2049", "2048"}));
}

TEST(IdentityTest, PartsAreCheckedAlone) {
  EXPECT_TRUE(CheckTrustDomain("lab.example").ok());
  EXPECT_TRUE(CheckIdentityJob("fashion_mnist").ok());
  for (const char* role : {"coordinator", "ps/0", "worker", "worker/3", "evaluator", "operator"})
    EXPECT_TRUE(CheckRoleText(role).ok()) << role;
  EXPECT_THAT(CheckTrustDomain("Lab"), FailsWith(absl::StatusCode::kInvalidArgument, {"Lab"}));
  EXPECT_THAT(CheckIdentityJob("a/b"), FailsWith(absl::StatusCode::kInvalidArgument, {"a/b"}));
  for (const char* role : {"ps", "ps/", "chief", "worker/a", "viewer/1", "../viewer"}) {
    EXPECT_THAT(CheckRoleText(role), FailsWith(absl::StatusCode::kInvalidArgument, {role}));
  }
}

}  // namespace
}  // namespace shoal
