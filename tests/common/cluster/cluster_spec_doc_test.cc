// The examples of docs/cluster-spec.md, and the messages that it explains.

#include <gtest/gtest.h>

#include "common/cluster/cluster_spec.h"
#include "tests/common/json/document_text.h"

namespace shoal {
namespace {

TEST(ClusterSpecDocTest, ExamplesAreRight) {
  const std::string document = DocumentText("cluster-spec.md");
  int examples = 0;
  for (size_t at = 0; (at = document.find("```json\n", at)) != std::string::npos; ++examples) {
    at += 8;
    const std::string text = document.substr(at, document.find("```", at) - at);
    const auto spec = ParseClusterSpec(text, "document", /*need_task=*/true);
    EXPECT_TRUE(spec.ok()) << text << "\n" << spec.status();
  }
  EXPECT_EQ(examples, 3);
}

TEST(ClusterSpecDocTest, MessagesAreExplained) {
  const std::string document = DocumentText("cluster-spec.md");
  // A wrong text, and what the document quotes of its message.
  const std::pair<const char*, const char*> cases[] = {
      {"chief", "is not JSON: parse error at line"},
      {R"({"cluster": {}, "cluster": {}})", "this key comes twice in one object"},
      {R"({"cluster": {"ps": ["a:1"], "worker": ["b:1"]}})", "$.cluster.chief: is missing"},
      {R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}})", "$.cluster.ps: is missing"},
      {R"({"cluster": {"chief": ["a:1"], "ps": ["b:1"]}})", "$.cluster.worker: is missing"},
      {R"({"cluster": {"chief": ["a:1", "b:1"]}})", "$.cluster.chief: has 2 addresses"},
      {R"({"cluster": {"ps": {"0": "a:1", "2": "b:1"}}})", "$.cluster.ps: has the indices 0, 2"},
      {R"({"cluster": {"wroker": []}})", "is not a task type; did you mean"},
      {R"({"cluster": {"master": []}})", "is TensorFlow 1's name"},
      {R"({"cluster": {"ps": ["a"]}})", "has no port"},
      {R"({"cluster": {"ps": ["a:0"]}})", "has a port that is not a number from 1 to 65535"},
      {R"({"cluster": {"ps": ["::1:1"]}})", "has more than one colon"},
      {R"({"cluster": {}})", "$.task: is missing"},
      {R"({"cluster": {"ps": ["a:1", "b:1"]}, "task": {"type": "ps", "index": 3}})",
       "$.task.index: is 3, which is out of range; $.cluster.ps has 0 to 1"},
      {R"({"cluster": {}, "task": {"type": "ps", "index": "0"}})",
       "$.task.index: is \"0\", a string"},
      {R"({"clutser": {}})", "is not a known key"},
  };
  for (const auto& [text, quoted] : cases) {
    const std::string message(
        ParseClusterSpec(text, "TF_CONFIG", /*need_task=*/true).status().message());
    EXPECT_NE(message.find(quoted), std::string::npos) << text << "\n" << message;
    EXPECT_NE(document.find(quoted), std::string::npos) << "not in the document: " << quoted;
  }
}

}  // namespace
}  // namespace shoal
