#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shoal {

enum class TaskType { kChief, kWorker, kPs, kEvaluator };

// Returns "chief", "worker", "ps" or "evaluator".
const char* TaskTypeName(TaskType type);

// One process of the cluster.
struct TaskId {
  TaskType type = TaskType::kChief;
  int index = 0;
};

// "worker 1".
std::string TaskName(const TaskId& task);

// Parses "worker 1", or the same with ':', '/' or '-' in between. "chief" alone is chief 0.
absl::StatusOr<TaskId> ParseTaskName(const std::string& text);

// A TCP address of the cluster spec: "host:port", "[::1]:port".
struct Address {
  std::string host;  // without brackets
  int port = 0;

  static absl::StatusOr<Address> Parse(const std::string& text);
  std::string ToString() const;
  // True for 127.0.0.0/8, ::1 and localhost.
  bool IsLoopback() const;
};

// The tasks of the cluster: TF_CONFIG's `cluster` and `task`. Plain data; immutable after parsing.
struct ClusterSpec {
  // By index, dense or sparse. The rules are in docs/cluster-spec.md.
  std::map<int, Address> chief;
  std::map<int, Address> ps;
  std::map<int, Address> workers;
  std::map<int, Address> evaluator;
  TaskId task;  // this process; set only if requested

  // Returns the address of a task, or null if it is not listed. An evaluator may be unlisted.
  const Address* Find(const TaskId& task) const;
  const Address& coordinator_address() const { return chief.begin()->second; }
  // Returns "127.0.0.1:2222" by ps index, 0 to n-1.
  std::vector<std::string> PsAddresses() const;
  std::set<int> WorkerIndices() const;
};

// Reads the text of TF_CONFIG, or of a --cluster_spec file in the same format. `source` names it in
// messages: "TF_CONFIG" or the file. Returns all errors in one kInvalidArgument status, one on each
// line: JSON path, value, expected value. If `need_task`, requires that the text names the task of
// this process. `shoal validate` does not.
absl::StatusOr<ClusterSpec> ParseClusterSpec(const std::string& text, const std::string& source,
                                             bool need_task);

// Whether LoadClusterSpec() has a text to read: `file` or the variable is not empty.
bool ClusterSpecGiven(const std::string& file);

// Reads --cluster_spec=FILE if `file` is not empty, else the environment variable TF_CONFIG. If
// both are missing, returns an error that names both.
absl::StatusOr<ClusterSpec> LoadClusterSpec(const std::string& file, bool need_task);

}  // namespace shoal
