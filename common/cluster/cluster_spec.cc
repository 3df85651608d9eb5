#include "common/cluster/cluster_spec.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/json/json_errors.h"
#include "common/json/json_object.h"
#include "common/json/json_text.h"

namespace shoal {
namespace {

using nlohmann::json;

// Larger than in any cluster. A larger index is a typing error.
constexpr int kMaxIndex = 99999;
constexpr char kMasterText[] =
    "is TensorFlow 1's name; call this task \"chief\", which runs Shoal's coordinator";

const std::vector<std::string>& TaskTypeNames() {
  static const auto* const kNames =
      new std::vector<std::string>{"chief", "ps", "worker", "evaluator"};
  return *kNames;
}

std::map<int, Address>* TasksOf(ClusterSpec* spec, TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return &spec->chief;
    case TaskType::kWorker:
      return &spec->workers;
    case TaskType::kPs:
      return &spec->ps;
    case TaskType::kEvaluator:
      break;
  }
  return &spec->evaluator;
}

const std::map<int, Address>& TasksOf(const ClusterSpec& spec, TaskType type) {
  return *TasksOf(const_cast<ClusterSpec*>(&spec), type);
}

bool TaskTypeFromName(const std::string& name, TaskType* type) {
  for (const TaskType candidate :
       {TaskType::kChief, TaskType::kWorker, TaskType::kPs, TaskType::kEvaluator}) {
    if (name != TaskTypeName(candidate)) continue;
    *type = candidate;
    return true;
  }
  return false;
}

// The error for a `name` that is not a task type.
std::string UnknownTaskType(const std::string& name) {
  if (name == "master") return kMasterText;
  return absl::StrCat("is not a task type", SuggestName(name, TaskTypeNames()));
}

// "0", "17": an index as a key of a dict-shaped job; -1 otherwise.
int IndexFromKey(const std::string& key) {
  if (key.empty() || key.size() > 5 || (key.size() > 1 && key[0] == '0')) return -1;
  int index = 0;
  for (const char c : key) {
    if (c < '0' || c > '9') return -1;
    index = index * 10 + (c - '0');
  }
  return index;
}

std::string Plural(size_t count, const std::string& noun) {
  return absl::StrCat(count, " ", noun, count == 1 ? "" : "es");
}

// The text of TF_CONFIG; empty if it is not set.
std::string VariableText() {
  const char* text = std::getenv("TF_CONFIG");
  return text == nullptr ? "" : text;
}

// Reads one text. Used once, by ParseClusterSpec.
class ClusterSpecParser {
 public:
  ClusterSpecParser(const json& root, const std::string& source) : root_(root), errors_(source) {}

  absl::StatusOr<ClusterSpec> Parse(bool need_task) {
    JsonObject top(root_, "$", &errors_);
    // Reads the cluster first, because checking the task needs all of it.
    if (const json* cluster = top.Require("cluster",
                                          "the addresses of all tasks, for example {\"chief\": "
                                          "[\"host0:2222\"], \"ps\": [\"host1:2222\"], "
                                          "\"worker\": [\"host2:2222\"]}")) {
      ReadCluster(*cluster);
    }
    ReadTask(top, need_task);
    ReadRpcLayer(top);
    for (const char* key : {"environment", "session_master", "job"}) top.Ignore(key);
    top.RejectUnknownKeys();
    if (absl::Status status = errors_.ToStatus(); !status.ok()) return status;
    return std::move(spec_);
  }

 private:
  void ReadCluster(const json& cluster) {
    if (!cluster.is_object()) {
      const JsonObject adds_the_error(cluster, "$.cluster", &errors_);
      return;
    }
    for (const auto& [name, job] : cluster.items()) {
      const std::string path = JsonPath("$.cluster", name);
      TaskType type;
      if (TaskTypeFromName(name, &type)) {
        std::map<int, Address>* tasks = TasksOf(&spec_, type);
        ReadJob(job, path, tasks);
        if (tasks->empty() && !job.empty()) unreadable_.insert(type);
      } else {
        errors_.Add(path, UnknownTaskType(name));
      }
    }
    cluster_read_ = true;
    RejectDuplicates();
    CheckCounts(cluster);
  }

  // Reads a list of addresses, or an object of addresses by index.
  void ReadJob(const json& job, const std::string& path, std::map<int, Address>* tasks) {
    if (job.is_array()) {
      for (size_t i = 0; i < job.size(); ++i) {
        if (i > kMaxIndex) {
          errors_.Add(path,
                      absl::StrCat("has ", job.size(), " addresses; at most ", kMaxIndex + 1));
          return;
        }
        ReadAddress(job[i], JsonPath(path, i), static_cast<int>(i), tasks);
      }
      return;
    }
    if (!job.is_object()) {
      errors_.Add(path,
                  absl::StrCat("is ", ShortJsonAndType(job),
                               "; must be a list of addresses, or an object of them by index"));
      return;
    }
    for (const auto& [key, address] : job.items()) {
      const int index = IndexFromKey(key);
      if (index < 0) {
        errors_.Add(JsonPath(path, key),
                    absl::StrCat("is not an index; must be a number from 0 to ", kMaxIndex,
                                 ", for example {\"1\": \"host:2222\"}"));
        continue;
      }
      ReadAddress(address, JsonPath(path, key), index, tasks);
    }
  }

  void ReadAddress(const json& value, const std::string& path, int index,
                   std::map<int, Address>* tasks) {
    if (!value.is_string()) {
      errors_.Add(path, absl::StrCat("is ", ShortJsonAndType(value),
                                     "; must be an address, for example \"host:2222\""));
      // Keeps the index in use, so that this error does not cause further errors about indices.
      (*tasks)[index] = Address{};
      return;
    }
    absl::StatusOr<Address> address = Address::Parse(value.get<std::string>());
    if (!address.ok()) {
      errors_.Add(path, std::string(address.status().message()));
      (*tasks)[index] = Address{};
      return;
    }
    (*tasks)[index] = *address;
    listed_.push_back({path, *address});
  }

  void RejectDuplicates() {
    std::map<std::string, std::string> path_by_address;
    for (const Listed& listed : listed_) {
      const std::string address = absl::AsciiStrToLower(listed.address.ToString());
      const auto [found, inserted] = path_by_address.emplace(address, listed.path);
      if (inserted) continue;
      errors_.Add(listed.path,
                  absl::StrCat("is \"", listed.address.ToString(), "\", as ", found->second,
                               " is; every task needs an address of its own"));
    }
  }

  void CheckCounts(const json& cluster) {
    CheckChief(cluster);
    if (spec_.ps.empty() && unreadable_.count(TaskType::kPs) == 0) {
      errors_.Add("$.cluster.ps",
                  "is missing: at least one ps holds the parameters, for example "
                  "\"ps\": [\"host1:2222\"]");
    } else if (!spec_.ps.empty() && spec_.ps.rbegin()->first >= static_cast<int>(spec_.ps.size())) {
      errors_.Add("$.cluster.ps", absl::StrCat("has the indices ", IndicesText(spec_.ps),
                                               "; the variables are divided over all ps, so their "
                                               "indices must be 0 to n-1 without a gap"));
    }
    if (spec_.workers.empty() && unreadable_.count(TaskType::kWorker) == 0) {
      errors_.Add("$.cluster.worker",
                  "is missing: at least one worker computes, for example "
                  "\"worker\": [\"host2:2222\"]");
    }
    CheckSingle(spec_.evaluator, "evaluator");
  }

  void CheckChief(const json& cluster) {
    if (!spec_.chief.empty()) return CheckSingle(spec_.chief, "chief");
    if (unreadable_.count(TaskType::kChief) > 0) return;
    std::string text =
        "is missing: the chief runs Shoal's coordinator, which some TensorFlow tutorials leave out";
    if (!listed_.empty() && cluster.count("master") == 0) {
      json corrected = root_;
      corrected["cluster"]["chief"] = json::array({GuessChief().ToString()});
      absl::StrAppend(
          &text, "; corrected: ", corrected.dump(-1, ' ', false, json::error_handler_t::replace));
    }
    errors_.Add("$.cluster.chief", text);
  }

  // Guesses the host of the first worker, and the first free port from that worker's port on.
  Address GuessChief() const {
    Address guess = listed_.front().address;
    for (const auto& [index, worker] : spec_.workers) {
      if (worker.port == 0) continue;  // its address was not readable
      guess = worker;
      break;
    }
    std::set<int> taken;
    for (const Listed& listed : listed_) {
      if (listed.address.host == guess.host) taken.insert(listed.address.port);
    }
    while (taken.count(guess.port) > 0) guess.port = guess.port < 65535 ? guess.port + 1 : 1024;
    return guess;
  }

  void CheckSingle(const std::map<int, Address>& tasks, const std::string& name) {
    const std::string path = absl::StrCat("$.cluster.", name);
    if (tasks.size() > 1) {
      errors_.Add(path, absl::StrCat("has ", Plural(tasks.size(), "address"),
                                     "; a cluster has one ", name));
    } else if (!tasks.empty() && tasks.begin()->first != 0) {
      errors_.Add(path, absl::StrCat("has the index ", tasks.begin()->first, "; the one ", name,
                                     " has the index 0"));
    }
  }

  void ReadTask(JsonObject& top, bool need_task) {
    const json* value = need_task ? top.Require("task",
                                                "the task of this process, for example "
                                                "{\"type\": \"worker\", \"index\": 0}")
                                  : top.Find("task");
    if (value == nullptr) return;
    JsonObject task(*value, "$.task", &errors_);
    const bool has_type = ReadTaskType(task);
    const json* index = task.Require("index", "the task's number, from 0");
    for (const char* key : {"trial", "cloud"}) task.Ignore(key);
    task.RejectUnknownKeys();
    if (index == nullptr) return;
    if (!index->is_number_integer()) {
      errors_.Add("$.task.index",
                  absl::StrCat("is ", ShortJsonAndType(*index), "; must be an integer, from 0"));
    } else if (has_type && cluster_read_) {
      CheckTaskIndex(*index);
    }
  }

  bool ReadTaskType(JsonObject& task) {
    const json* type = task.Require("type", "one of chief, ps, worker, evaluator");
    if (type == nullptr) return false;
    if (!type->is_string()) {
      task.AddWrong("type", *type, "one of \"chief\", \"ps\", \"worker\", \"evaluator\"");
      return false;
    }
    const std::string name = type->get<std::string>();
    if (TaskTypeFromName(name, &spec_.task.type)) return true;
    errors_.Add("$.task.type",
                absl::StrCat("is ", ShortJson(*type), ", which ", UnknownTaskType(name)));
    return false;
  }

  void CheckTaskIndex(const json& index) {
    const TaskType type = spec_.task.type;
    const std::map<int, Address>& tasks = TasksOf(spec_, type);
    const bool in_range = !(index.is_number_unsigned() && index.get<uint64_t>() > kMaxIndex) &&
                          index.get<int64_t>() >= 0 && index.get<int64_t>() <= kMaxIndex;
    const int number = in_range ? index.get<int>() : -1;
    const bool unlisted_evaluator = type == TaskType::kEvaluator && tasks.empty() && number == 0;
    if (tasks.count(number) == 0 && !unlisted_evaluator) {
      // A job without addresses has its own error. The evaluator needs none.
      if (tasks.empty() && type != TaskType::kEvaluator) return;
      const std::string listed = tasks.empty() ? "a cluster has one evaluator, of index 0"
                                               : absl::StrCat("$.cluster.", TaskTypeName(type),
                                                              " has ", IndicesText(tasks));
      errors_.Add("$.task.index",
                  absl::StrCat("is ", ShortJson(index), ", which is out of range; ", listed));
      return;
    }
    spec_.task.index = number;
  }

  void ReadRpcLayer(JsonObject& top) {
    const json* layer = top.Find("rpc_layer");
    if (layer != nullptr && *layer != "grpc")
      top.AddWrong("rpc_layer", *layer, "\"grpc\", or left out");
  }

  // "0 to 3", or "0, 2, 5" if there are gaps.
  static std::string IndicesText(const std::map<int, Address>& tasks) {
    const int first = tasks.begin()->first;
    const int last = tasks.rbegin()->first;
    if (first == last) return absl::StrCat(first, " alone");
    if (last - first + 1 == static_cast<int>(tasks.size()))
      return absl::StrCat(first, " to ", last);
    constexpr size_t kShown = 10;
    std::vector<int> indices;
    for (const auto& [index, address] : tasks) {
      if (indices.size() == kShown) break;
      indices.push_back(index);
    }
    return absl::StrCat(absl::StrJoin(indices, ", "), tasks.size() > kShown ? ", ..." : "");
  }

  struct Listed {
    std::string path;
    Address address;
  };

  const json& root_;
  JsonErrors errors_;
  ClusterSpec spec_;
  bool cluster_read_ = false;
  std::set<TaskType> unreadable_;  // jobs with own errors and no task; not reported as missing
  std::vector<Listed> listed_;     // readable addresses
};

}  // namespace

const char* TaskTypeName(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "chief";
    case TaskType::kWorker:
      return "worker";
    case TaskType::kPs:
      return "ps";
    case TaskType::kEvaluator:
      break;
  }
  return "evaluator";
}

std::string TaskName(const TaskId& task) {
  return absl::StrCat(TaskTypeName(task.type), " ", task.index);
}

absl::StatusOr<TaskId> ParseTaskName(const std::string& text) {
  const size_t end = std::min(text.find_first_of(" :/-"), text.size());
  TaskId task;
  const bool known = TaskTypeFromName(text.substr(0, end), &task.type);
  const bool has_index = end + 1 < text.size();
  if (known && has_index && absl::SimpleAtoi(text.substr(end + 1), &task.index) &&
      task.index >= 0 && task.index <= kMaxIndex) {
    return task;
  }
  if (known && end == text.size() && task.type == TaskType::kChief) return task;
  return absl::InvalidArgumentError(
      absl::StrCat("\"", text, "\" is not a task; expected one such as worker:1 or chief"));
}

const Address* ClusterSpec::Find(const TaskId& id) const {
  const std::map<int, Address>& tasks = TasksOf(*this, id.type);
  const auto found = tasks.find(id.index);
  return found == tasks.end() ? nullptr : &found->second;
}

std::vector<std::string> ClusterSpec::PsAddresses() const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : ps) addresses.push_back(address.ToString());
  return addresses;
}

std::set<int> ClusterSpec::WorkerIndices() const {
  std::set<int> indices;
  for (const auto& [index, address] : workers) indices.insert(index);
  return indices;
}

absl::StatusOr<ClusterSpec> ParseClusterSpec(const std::string& text, const std::string& source,
                                             bool need_task) {
  SHOAL_ASSIGN_OR_RETURN(const json root, ParseJson(text, source));
  return ClusterSpecParser(root, source).Parse(need_task);
}

bool ClusterSpecGiven(const std::string& file) { return !file.empty() || !VariableText().empty(); }

absl::StatusOr<ClusterSpec> LoadClusterSpec(const std::string& file, bool need_task) {
  if (!ClusterSpecGiven(file)) {
    return absl::InvalidArgumentError(
        "no cluster spec: neither the flag --cluster_spec=FILE nor the environment variable "
        "TF_CONFIG is set");
  }
  if (file.empty()) return ParseClusterSpec(VariableText(), "TF_CONFIG", need_task);
  SHOAL_ASSIGN_OR_RETURN(const std::string text, ReadJsonFile(file));
  return ParseClusterSpec(text, file, need_task);
}

}  // namespace shoal
