#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "common/cluster/cluster_spec.h"

namespace shoal {

// The deaths of tasks that nobody has forgiven, for the last words of a training that failed.
// However many there were, it holds the description of each task's first one, a sentence about each
// of the newest, and a count. Plain state; not thread-safe.
class DeathList {
 public:
  static constexpr size_t kMaxListed = 20;

  // `description`: many lines. `sentence`: one.
  void Add(const TaskId& task, std::string description, std::string sentence);
  // Forgets all of a task.
  void Forgive(const TaskId& task);

  // Descriptions of the first death of a task, and of the first of any task of a type. There must
  // have been one.
  const std::string& FirstOf(const TaskId& task) const;
  const std::string& FirstOf(TaskType type) const;
  // The sentences, oldest first, on lines of their own that begin with a newline; empty where there
  // was only one.
  std::string ToString() const;

 private:
  struct Task {
    TaskId id;
    std::string first_description;
    uint64_t deaths = 0;
  };
  struct Death {
    TaskId task;
    std::string sentence;
  };

  std::vector<Task> tasks_;   // in the order of their first deaths
  std::deque<Death> newest_;  // at most kMaxListed
};

}  // namespace shoal
