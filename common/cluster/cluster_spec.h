#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace shoal {

enum class TaskType { kChief, kWorker, kPs, kEvaluator };

// "chief", "worker", "ps", "evaluator".
const char* TaskTypeName(TaskType type);

// One process of the cluster.
struct TaskId {
  TaskType type = TaskType::kChief;
  int index = 0;
};

// "worker 1".
std::string TaskName(const TaskId& task);

// "worker 1", and the same with ':', '/' or '-' in between; "chief" alone is chief 0.
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

// Who takes part: TF_CONFIG's `cluster` and `task`. Plain data; immutable after parsing.
struct ClusterSpec {
  // Dense or sparse, by index. docs/cluster-spec.md has the rules.
  std::map<int, Address> chief;
  std::map<int, Address> ps;
  std::map<int, Address> workers;
  std::map<int, Address> evaluator;
  TaskId task;  // which of them this process is, where that was asked for

  // Address of a task; null when it is not listed (an evaluator need not be).
  const Address* Find(const TaskId& task) const;
  const Address& chief_address() const { return chief.begin()->second; }
  // "127.0.0.1:2222" by ps index, 0 to n-1.
  std::vector<std::string> PsAddresses() const;
  std::set<int> WorkerIndices() const;
};

// Reads the text of TF_CONFIG (or of a --cluster_spec file, the same format). `source` names it in
// messages: "TF_CONFIG" or the file. Collects all errors and returns them in one kInvalidArgument
// status, a line each: JSON path, value, what would be right.
// `need_task`: the text must say which task this process is (not so for `shoal validate`).
absl::StatusOr<ClusterSpec> ParseClusterSpec(const std::string& text, const std::string& source,
                                             bool need_task);

// Whether there is one for LoadClusterSpec() to read: `file` or the variable is not empty.
bool ClusterSpecGiven(const std::string& file);

// From --cluster_spec=FILE when `file` is not empty, else from the environment variable TF_CONFIG.
// Neither: an error that names both ways.
absl::StatusOr<ClusterSpec> LoadClusterSpec(const std::string& file, bool need_task);

}  // namespace shoal
